package runtime

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"
)

// ProcessInfo describes an active run: of Spawn and SpawnCode, or of Run, Exec and Command.
type ProcessInfo struct {
	PID     int      // of its first process, as the guest sees it
	Name    string   // of the program: as the caller gave it, or the file name of code
	Args    []string // its arguments
	Started time.Time
	Usage   Usage // so far
}

// Processes lists the active runs, the oldest first.
func (rt *NodeRuntime) Processes() []ProcessInfo {
	var list []ProcessInfo
	for _, r := range rt.active.list() {
		usage, err := r.usage()
		if err != nil || r.hasEnded() {
			continue
		}
		name := r.task.command.Path
		if r.task.program != nil {
			name = path.Base(r.task.program.Path)
		}
		list = append(list, ProcessInfo{r.process.GuestPID(), name, slices.Clone(r.task.args), r.began, usage})
	}
	return list
}

// Kill ends the run whose first process has that PID, as [Process.Kill] does. The error wraps
// os.ErrProcessDone if no run has it.
func (rt *NodeRuntime) Kill(pid int) error {
	for _, r := range rt.active.list() {
		if r.process.GuestPID() == pid && !r.hasEnded() {
			r.cancel()
			return nil
		}
	}
	return fmt.Errorf("gaol: kill %d: %w", pid, os.ErrProcessDone)
}

// activeRuns is the set of a runtime's active runs.
type activeRuns struct {
	mu     sync.Mutex
	runs   map[*activeRun]struct{}
	closed bool

	spawned sync.WaitGroup // goroutines that wait for runs without a waiting caller
}

func (a *activeRuns) add(r *activeRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs == nil {
		a.runs = map[*activeRun]struct{}{}
	}
	a.runs[r] = struct{}{}
}

func (a *activeRuns) remove(r *activeRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, r)
}

// list returns the runs, the oldest first.
func (a *activeRuns) list() []*activeRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*activeRun
	for r := range a.runs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *activeRun) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.process.PID(), b.process.PID()))
	})
	return list
}

// reserve reports whether another run without a waiting caller may start. The caller must
// then call spawned.Done.
func (a *activeRuns) reserve() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.spawned.Add(1)
	}
	return !a.closed
}

func (a *activeRuns) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}
