package runtime

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// ProcessInfo is a run that goes on: of Spawn and SpawnCode, and of Run, Exec and Command.
type ProcessInfo struct {
	PID     int      // of its first process, as the guest numbers it
	Name    string   // the program's: as it was given, or the file name of code
	Args    []string // its arguments
	Started time.Time
	Usage   Usage // up to now
}

// Processes lists the runs that go on, the oldest first.
func (rt *NodeRuntime) Processes() []ProcessInfo {
	var list []ProcessInfo
	for _, l := range rt.live.all() {
		usage, err := l.usage()
		if err != nil || l.hasEnded() {
			continue
		}
		name, args := l.task.shown()
		list = append(list, ProcessInfo{l.process.GuestPID(), name, slices.Clone(args), l.began, usage})
	}
	return list
}

// Kill ends the run whose first process has that number, as [Process.Kill] does. The
// error wraps os.ErrProcessDone if there is none.
func (rt *NodeRuntime) Kill(pid int) error {
	for _, l := range rt.live.all() {
		if l.process.GuestPID() == pid && !l.hasEnded() {
			l.end()
			return nil
		}
	}
	return fmt.Errorf("gaol: kill %d: %w", pid, os.ErrProcessDone)
}

// shown are a task's name and arguments as its caller gave them.
func (t *task) shown() (name string, args []string) {
	if t.program == nil {
		return t.path, t.args
	}
	return t.program.name, t.args[t.script:]
}

func (l *live) usage() (Usage, error) {
	u, err := l.process.Usage()
	usage := Usage{CPU: u.CPU, Memory: u.Memory, PeakMemory: u.PeakMemory, PeakPids: u.PeakPids}
	if l.hasEnded() {
		usage.Memory = 0
	}
	return usage, err
}

func (l *live) hasEnded() bool {
	select {
	case <-l.process.Done():
		return true
	default:
		return false
	}
}

// register has the runs of a runtime that go on.
type register struct {
	mu     sync.Mutex
	runs   map[*live]struct{}
	closed bool

	spawned sync.WaitGroup // what looks after spawned processes
}

func (r *register) add(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[*live]struct{}{}
	}
	r.runs[l] = struct{}{}
}

func (r *register) remove(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, l)
}

// all are the runs, the oldest first.
func (r *register) all() []*live {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*live
	for l := range r.runs {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *live) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.process.PID(), b.process.PID()))
	})
	return list
}

// spawn reports whether there may be another spawned process. The caller then has to
// call spawned.Done.
func (r *register) spawn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.spawned.Add(1)
	}
	return !r.closed
}

func (r *register) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
