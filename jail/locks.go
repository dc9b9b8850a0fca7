package jail

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// The kernel charges the memory of file locks, some 200 bytes each, to no cgroup, and
// has no limit on their number that it enforces. So the host watches the machine's slab
// memory, which is cheap to read, and where it grows counts the locks of each run, which
// is not: /proc/locks stops all other users of locks meanwhile.
const (
	maxLocks = 16_384 // that a run may hold; SQLite takes three for a database

	slabGrowth = 8 << 20                // bytes, after which locks are counted
	slabPeriod = 100 * time.Millisecond // in which a processor takes some 15,000 locks
)

// lockWatch kills runs that hold too many locks. It is shared by all jails of this
// process and does nothing while none of them runs anything.
type lockWatch struct {
	mu     sync.Mutex
	live   map[*Process]struct{}
	timer  *time.Timer // nil while there is nothing to watch
	lowest int64       // bytes of slab memory since locks were counted last; 0: not read yet
}

var locks = lockWatch{live: map[*Process]struct{}{}}

func (w *lockWatch) add(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[p] = struct{}{}
	if w.timer == nil {
		w.lowest = 0
		w.timer = time.AfterFunc(slabPeriod, w.look)
	}
}

func (w *lockWatch) remove(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, p)
	if len(w.live) == 0 && w.timer != nil && w.timer.Stop() {
		w.timer = nil
	}
}

// look is called by the timer, and starts it anew.
func (w *lockWatch) look() {
	slab, err := slabMemory()
	if err == nil && w.grown(slab) {
		w.count()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.live) == 0 {
		w.timer = nil
		return
	}
	w.timer.Reset(slabPeriod)
}

func (w *lockWatch) grown(slab int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lowest == 0 || slab < w.lowest {
		w.lowest = slab
	}
	if slab < w.lowest+slabGrowth {
		return false
	}
	w.lowest = slab
	return true
}

// count kills each run that holds too many locks.
func (w *lockWatch) count() {
	runs := w.byPID()
	held := map[*Process]int{}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return
	}
	defer f.Close()
	// The kernel goes through all locks from the first for each page that is read: it is
	// read no further than it takes to find a run.
	for lines := bufio.NewScanner(f); lines.Scan(); {
		p := runs[lockOwner(lines.Bytes())]
		if p == nil {
			continue
		}
		if held[p]++; held[p] == maxLocks {
			p.lockedTooMuch.Store(true)
			p.Kill()
			return // the others are counted as soon as there are more
		}
	}
}

// byPID gives the run of each process.
func (w *lockWatch) byPID() map[int]*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := map[int]*Process{}
	for p := range w.live {
		pids, _ := p.group.PIDs() // one that is ending has none
		for _, pid := range pids {
			runs[pid] = p
		}
	}
	return runs
}

// lockOwner reads the process of a line such as
//
//	1: POSIX  ADVISORY  WRITE 1234 00:1a:5 0 EOF
//
// in which -> after the number marks a lock that is waited for. It is 0 if there is none.
func lockOwner(line []byte) int {
	fields := bytes.Fields(line)
	if len(fields) > 1 && string(fields[1]) == "->" {
		fields = fields[1:]
	}
	if len(fields) < 5 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[4]))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// slabMemory reads how many bytes the kernel's slab caches have that can't be reclaimed.
func slabMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("SUnreclaim:"))
	number, _, ok := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" kB"))
	if !ok {
		return 0, io.ErrUnexpectedEOF
	}
	kilobytes, err := strconv.ParseInt(string(number), 10, 64)
	return kilobytes << 10, errors.Join(err)
}
