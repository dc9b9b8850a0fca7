package jail

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The kernel charges some of what it allocates for a guest to no cgroup: file locks, and
// what sockets hold before they are accepted, in error queues, as options or corked. No
// limit applies to these. So the host watches how much memory the kernel uses, which is
// cheap to read, and where that grows finds out who holds it, which is not: reading
// /proc/locks stops all other users of locks meanwhile, and sockets are listed one by one.
const (
	maxLocks        = 16_384   // that a run may hold, some 200 bytes each; SQLite takes three for a database
	maxSocketMemory = 32 << 20 // bytes that all sockets of a jail may hold beyond what its runs are charged

	memoryGrowth = 8 << 20 // bytes, after which locks and sockets are counted
	memoryPeriod = 100 * time.Millisecond
)

// memoryWatch kills runs that hold too much memory that they are not charged for. It is
// shared by all jails of this process and does nothing while none of them runs anything.
type memoryWatch struct {
	mu    sync.Mutex
	live  map[*Process]struct{}
	timer *time.Timer // nil while there is nothing to watch

	slab, kernel growth
}

var uncharged = memoryWatch{live: map[*Process]struct{}{}}

func (w *memoryWatch) add(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[p] = struct{}{}
	if w.timer == nil {
		w.slab, w.kernel = growth{}, growth{}
		w.timer = time.AfterFunc(memoryPeriod, w.look)
	}
}

func (w *memoryWatch) remove(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, p)
	if len(w.live) == 0 && w.timer != nil && w.timer.Stop() {
		w.timer = nil
	}
}

// look is called by the timer, and starts it anew.
func (w *memoryWatch) look() {
	if m, err := readKernelMemory(); err == nil {
		w.mu.Lock()
		slabGrew, kernelGrew := w.slab.look(m.slab), w.kernel.look(m.all)
		w.mu.Unlock()
		if slabGrew {
			w.countLocks()
		}
		if kernelGrew {
			w.measureSockets()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.live) == 0 {
		w.timer = nil
		return
	}
	w.timer.Reset(memoryPeriod)
}

// growth compares an amount of memory with the least since it last grew.
type growth struct {
	least int64
	begun bool
}

// look reports whether the amount has grown by memoryGrowth.
func (g *growth) look(now int64) bool {
	if !g.begun || now < g.least {
		g.least, g.begun = now, true
	}
	if now < g.least+memoryGrowth {
		return false
	}
	g.least = now
	return true
}

// byPID returns the run of each process.
func (w *memoryWatch) byPID() map[int]*Process {
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

// byNetwork returns the runs of each jail that has a network.
func (w *memoryWatch) byNetwork() map[*Jail][]*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := map[*Jail][]*Process{}
	for p := range w.live {
		if p.jail.spec.Loopback {
			runs[p.jail] = append(runs[p.jail], p)
		}
	}
	return runs
}

// killForMemory kills a run that holds too much.
func (p *Process) killForMemory() {
	p.uncharged.Store(true)
	p.Kill()
}

// kernelMemory is what the kernel of the machine uses, in bytes.
type kernelMemory struct {
	slab int64 // in caches for objects, without what it could free
	all  int64 // for anything but files and the memory of processes
}

func readKernelMemory() (kernelMemory, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return kernelMemory{}, err
	}
	return parseKernelMemory(string(text))
}

// parseKernelMemory reads what proc_meminfo(5) describes.
func parseKernelMemory(text string) (m kernelMemory, err error) {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		number, isKB := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && isKB {
			values[name] = n << 10
		}
	}
	for _, name := range []string{"MemTotal", "MemFree", "Buffers", "Cached", "AnonPages", "SReclaimable", "SUnreclaim"} {
		if _, ok := values[name]; !ok {
			return m, fmt.Errorf("/proc/meminfo has no %s", name)
		}
	}
	m.slab = values["SUnreclaim"]
	m.all = values["MemTotal"] - values["MemFree"] - values["Buffers"] - values["Cached"] - values["SwapCached"] -
		values["AnonPages"] - values["SReclaimable"]
	return m, nil
}
