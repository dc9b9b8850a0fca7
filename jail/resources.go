package jail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/sockdiag"
	"gaol/jail/step"
)

// Resources counts the kernel objects of a jail's runs.
type Resources struct {
	Processes   int   `json:"runningProcesses" doc:"Of runs, processes and contexts, with their descendants."`
	Descriptors int   `json:"openFds" doc:"Descriptors of all processes together."`
	Sockets     int   `json:"sockets" doc:"Open sockets of all kinds."`
	Listeners   int   `json:"socketListeners" doc:"TCP sockets that listen."`
	Connections int   `json:"socketConnections" doc:"TCP sockets that are connected."` // two for a connection inside the jail
	Pipes       int   `json:"pipes" doc:"Open pipes, including standard input and output."`
	Terminals   int   `json:"ptys" doc:"Open terminals."`
	Memory      int64 `json:"memoryBytes" doc:"Memory of all processes together."` // bytes that are charged to the runs' cgroups
	Disk        int64 `json:"diskBytes" doc:"Bytes written to the tree."`
	Files       int64 `json:"files" doc:"Files and folders written to the tree."`

	// Truncated reports that a limit ended the count of descriptors, sockets, pipes and terminals.
	Truncated bool `json:"truncated" doc:"There are more than 16,384 descriptors; the rest are not counted."`
}

// maxDescriptors bounds the descriptors that Resources looks at. Each takes a system call.
const maxDescriptors = 16_384

// Resources counts the kernel objects of the jail's runs. The guest may change them meanwhile.
//
// Preconditions: the jail is closed after Resources has returned.
func (j *Jail) Resources(ctx context.Context) (Resources, error) {
	c := resourceCount{seen: map[string]struct{}{}}
	c.firstID, c.ids = j.HostIDs()
	for _, p := range j.liveRuns() {
		if !p.runs.Load() {
			continue // it waits for a program
		}
		usage, err := p.usage()
		if err != nil {
			continue // it has ended
		}
		c.Memory += usage.Memory
		pids, _ := p.group.PIDs() // fails for a run that has ended
		for _, pid := range pids {
			if err := context.Cause(ctx); err != nil {
				return Resources{}, err
			}
			c.addProcess(pid)
		}
	}
	err := errors.Join(c.addDisk(j), c.addTCP(j))
	return c.Resources, err
}

// liveRuns returns the processes that have not ended.
func (j *Jail) liveRuns() []*Process {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.live))
}

// resourceCount is a count in progress.
type resourceCount struct {
	Resources
	firstID, ids int
	seen         map[string]struct{} // sockets, pipes and terminals
}

// addProcess adds a process and its descriptors.
func (c *resourceCount) addProcess(pid int) {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid)) // with the user of the process, see proc(5)
	if err != nil {
		return // it has ended
	}
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid < c.firstID || uid >= c.firstID+c.ids {
		return // it has ended, and a process outside the jail has its pid
	}
	c.Processes++
	for _, file := range descriptors(pid) {
		if c.Descriptors >= maxDescriptors {
			c.Truncated = true
			return
		}
		c.Descriptors++
		if target, err := os.Readlink(file); err == nil { // neither opens nor waits for the file
			c.addObject(target)
		}
	}
}

// addObject adds the object of a descriptor, unless it was seen before.
func (c *resourceCount) addObject(link string) {
	var count *int
	switch {
	case strings.HasPrefix(link, "socket:["): // paths begin with a slash
		count = &c.Sockets
	case strings.HasPrefix(link, "pipe:["):
		count = &c.Pipes
	case strings.HasPrefix(link, "/dev/pts/") && link != "/dev/pts/ptmx": // the other end of a terminal
		count = &c.Terminals
	default:
		return
	}
	if _, seen := c.seen[link]; !seen {
		c.seen[link] = struct{}{}
		*count++
	}
}

// addDisk adds the content of the writable layer: the part of the guest's limits that is not
// free.
func (c *resourceCount) addDisk(j *Jail) error {
	disk, files, err := j.Free()
	c.Disk, c.Files = max(0, j.spec.Disk-disk), max(0, j.spec.Inodes-files)
	return err
}

// Free returns how many bytes and files the guest may still add to the writable layer.
func (j *Jail) Free() (disk, files int64, err error) {
	root, err := j.Root()
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &s); err != nil {
		return 0, 0, step.Wrap("read", "disk usage", os.NewSyscallError("fstatfs", err))
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Ffree), nil
}

// addTCP adds the TCP sockets of guests.
func (c *resourceCount) addTCP(j *Jail) error {
	if !j.spec.Loopback {
		return nil
	}
	return j.eachTCP(0, 1<<unix.BPF_TCP_LISTEN|1<<unix.BPF_TCP_ESTABLISHED, func(s sockdiag.Socket) {
		if s.State() == unix.BPF_TCP_LISTEN {
			c.Listeners++
		} else {
			c.Connections++
		}
	})
}

// The kernel does not charge all memory that it allocates for a guest to its cgroup: file
// locks, what sockets hold before they are accepted, in error queues, as options or corked,
// and the names that an overlay reads for each open folder. It enforces no limit on these. So
// the host watches the memory of the kernel, which is cheap to read, and looks for the run
// that holds it only when it grows: reading /proc/locks blocks all other users of locks, and
// sockets and descriptors are listed one by one.
const (
	maxLocks        = 16_384   // of a run, some 200 bytes each, when they are counted: see lockGrowth; SQLite takes three for a database
	maxSocketMemory = 16 << 20 // bytes that all sockets of a jail may hold beyond its runs' charges
	maxSameDir      = 12       // descriptors of one folder of an overlay, of a run
	maxDirMemory    = 64 << 20 // bytes of the names that the kernel keeps for descriptors of folders, of a run
	dirMemory       = 300 / 12 // bytes of names for each byte of a folder: a name takes some 300, and at least 12 of the folder

	// Bytes that may stall in the TCP sockets of a jail when the kernel's pages have grown:
	// each can keep a fragment of 32 KiB in memory, though it is charged as one byte.
	maxWaiting = 4 << 10

	// Growth of memory, in bytes, after which the objects are counted.
	lockGrowth   = 8 << 20
	socketGrowth = 8 << 20
	dirGrowth    = 32 << 20
	pageGrowth   = 256 << 20 // within pageWindow
	pageWindow   = time.Minute

	memoryPeriod  = 100 * time.Millisecond
	networkPeriod = 20 * time.Millisecond // with a network: sockets can take 2 GiB a second
	growingPeriod = 5 * time.Millisecond  // with a network, if the kernel took fastGrowth in the last period
	fastGrowth    = 2 << 20
	limitPeriod   = 50 * time.Millisecond // where the kernel does not enforce limits of memory
)

// memoryWatch kills runs that hold too much memory that is not charged to them. All jails
// of this process share it. It is idle while there are no runs.
type memoryWatch struct {
	mu    sync.Mutex
	live  map[*Process]struct{}
	timer *time.Timer // nil while idle

	locks, sockets, dirs, pages growth

	suspects map[*Jail]*suspect // used by check only

	pagesSince time.Time
	last       int64 // kernelMemory.all of the last check
	isGrowing  bool  // since the check before
}

var uncharged = memoryWatch{live: map[*Process]struct{}{}, suspects: map[*Jail]*suspect{}}

// add adds a process when it starts to run its program. A parked process allocates nothing for a guest.
func (w *memoryWatch) add(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.unwatched {
		return
	}
	w.live[p] = struct{}{}
	if w.timer == nil {
		w.locks, w.sockets, w.dirs, w.pages = unknown, unknown, unknown, unknown
		w.timer = time.AfterFunc(w.period(), w.check)
	}
}

func (w *memoryWatch) remove(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.unwatched = true
	delete(w.live, p)
	if len(w.live) == 0 && w.timer != nil && w.timer.Stop() { // no check is running
		w.timer = nil
		clear(w.suspects)
	}
}

// period is the time to the next check.
//
// Preconditions: w.mu is held.
func (w *memoryWatch) period() time.Duration {
	if kernel.Probe().Lacks(kernel.GroupLimits) {
		return limitPeriod
	}
	for p := range w.live {
		switch {
		case p.jail.spec.Loopback && w.isGrowing:
			return growingPeriod
		case p.jail.spec.Loopback:
			return networkPeriod
		}
	}
	return memoryPeriod
}

// check is called by the timer, and resets it.
func (w *memoryWatch) check() {
	if kernel.Probe().Lacks(kernel.GroupLimits) {
		w.checkLimits()
	} else if m, err := readKernelMemory(); err == nil {
		w.mu.Lock()
		if time.Since(w.pagesSince) > pageWindow {
			w.pages, w.pagesSince = unknown, time.Now()
		}
		locks, sockets := w.locks.by(m.slab, lockGrowth), w.sockets.by(m.all, socketGrowth)
		w.isGrowing, w.last = w.last > 0 && m.all-w.last > fastGrowth, m.all
		dirs, pages := w.dirs.by(m.slab, dirGrowth), w.pages.by(m.pages, pageGrowth)
		w.mu.Unlock()
		if locks {
			w.checkFileLocks()
		}
		if sockets || pages {
			w.checkSockets(pages)
		}
		w.checkStalled()
		if dirs {
			w.checkOpenDirs()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.live) == 0 {
		w.timer = nil
		clear(w.suspects)
		return
	}
	w.timer.Reset(w.period())
}

// checkLimits kills the largest process of each run that uses more memory than its limit, as kernels do that enforce it.
func (w *memoryWatch) checkLimits() {
	for _, runs := range w.byJail(func(*Spec) bool { return true }) {
		for _, p := range runs {
			u, err := p.group.Usage()
			if err == nil {
				p.peakMemory.Store(max(p.peakMemory.Load(), u.Memory))
			}
			if err != nil || p.limits.Memory == 0 || u.Memory <= p.limits.Memory { // an error: it has ended
				continue
			}
			if now := time.Now(); now.Sub(p.killedAt) > killPause { // until the killed process has freed its memory
				p.killedAt = now
				p.killLargest()
			}
		}
	}
}

// killPause is how long a killed process may take to free its memory.
const killPause = 200 * time.Millisecond

// killLargest kills the process with the most memory.
func (p *Process) killLargest() {
	largest, most := 0, -1
	pids, _ := p.group.PIDs() // fails for a run that has ended
	for _, pid := range pids {
		text, err := kernfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
			if pages, err := strconv.Atoi(fields[1]); err == nil && pages > most { // resident
				largest, most = pid, pages
			}
		}
	}
	if largest != 0 && unix.Kill(largest, unix.SIGKILL) == nil {
		p.killedForMemory.Add(1)
	}
}

// growth is the minimum of an amount of memory since it last grew.
type growth int64

const unknown growth = math.MaxInt64

// by reports whether the amount has grown by a step.
func (g *growth) by(now, step int64) bool {
	*g = min(*g, growth(now))
	if now-int64(*g) < step {
		return false
	}
	*g = growth(now)
	return true
}

// byPID returns the run of each process.
func (w *memoryWatch) byPID() map[int]*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := map[int]*Process{}
	for p := range w.live {
		pids, _ := p.group.PIDs() // fails for a run that has ended
		for _, pid := range pids {
			runs[pid] = p
		}
	}
	return runs
}

// byJail returns the runs of each jail with a spec that matches.
func (w *memoryWatch) byJail(matches func(*Spec) bool) map[*Jail][]*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := map[*Jail][]*Process{}
	for p := range w.live {
		if matches(&p.jail.spec) {
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

// kernelMemory is memory of the machine's kernel, in bytes.
type kernelMemory struct {
	slab  int64 // in object caches, without reclaimable memory
	all   int64 // for anything but files and the memory of processes
	pages int64 // the part of all that no other field of /proc/meminfo has, such as data in sockets
}

func readKernelMemory() (kernelMemory, error) {
	text, err := kernfile.ReadFile("/proc/meminfo")
	if err != nil {
		return kernelMemory{}, err
	}
	return parseKernelMemory(string(text))
}

// parseKernelMemory parses the format of proc_meminfo(5).
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
			return m, fmt.Errorf("/proc/meminfo lacks %s", name)
		}
	}
	m.slab = values["SUnreclaim"]
	m.all = values["MemTotal"] - values["MemFree"] - values["Buffers"] - values["Cached"] - values["SwapCached"] -
		values["AnonPages"] - values["SReclaimable"]
	m.pages = m.all - m.slab - values["KernelStack"] - values["PageTables"] - values["SecPageTables"] - values["VmallocUsed"] - values["Percpu"]
	return m, nil
}

// checkFileLocks kills a run that holds too many file locks.
func (w *memoryWatch) checkFileLocks() {
	runs := w.byPID()
	held := map[*Process]int{}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return
	}
	defer f.Close()
	// For each page that is read, the kernel walks all locks from the first. So the file is
	// read only until one run is found.
	for lines := bufio.NewScanner(f); lines.Scan(); {
		p := runs[lockOwner(lines.Text())]
		if p == nil {
			continue
		}
		if held[p]++; held[p] == maxLocks {
			p.killForMemory()
			return // other runs are found when the memory grows again
		}
	}
}

// lockOwner returns the pid in a line of /proc/locks such as
//
//	1: POSIX  ADVISORY  WRITE 1234 00:1a:5 0 EOF
//
// or a number that no process has. "->" after the number marks a lock that is waited for.
func lockOwner(line string) int {
	fields := strings.Fields(strings.Replace(line, " -> ", " ", 1))
	if len(fields) < 5 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[4])
	return pid
}

// checkOpenDirs kills runs that have too many descriptors of one folder, or of large folders, in a
// CopyOnWrite mount. For each descriptor that was read after the folder changed, the kernel keeps all
// names of the folder.
func (w *memoryWatch) checkOpenDirs() {
	hasCopies := func(s *Spec) bool {
		return slices.ContainsFunc(s.Mounts, func(m mounts.Mount) bool { return m.Access == mounts.CopyOnWrite })
	}
	for _, runs := range w.byJail(hasCopies) {
		for _, p := range runs {
			pids, _ := p.group.PIDs() // fails for a run that has ended
			if most, memory := openDirs(pids); most > maxSameDir || memory > maxDirMemory {
				p.killForMemory()
			}
		}
	}
}

// openDirs returns the number of descriptors of the folder that the processes have open most often, and how
// many bytes the kernel keeps at most for the names in all their open folders. It skips processes that end meanwhile.
func openDirs(pids []int) (most int, memory int64) {
	type folder struct{ device, inode uint64 }
	count := map[folder]int{}
	for _, pid := range pids {
		for _, file := range descriptors(pid) {
			var info unix.Stat_t
			if unix.Stat(file, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR {
				f := folder{info.Dev, info.Ino}
				count[f]++
				most = max(most, count[f])
				memory += info.Size * dirMemory
			}
		}
	}
	return most, memory
}

// descriptors returns the links in /proc to the open files of a process; none if it has ended.
func descriptors(pid int) []string {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	return files
}
