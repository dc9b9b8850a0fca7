package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Limits bound what all processes of a group and its descendants use together.
// A zero field sets no limit; a negative one is an error.
type Limits struct {
	Memory int64   // bytes, page cache and kernel memory included; swap is never used; on v1, as much again for TCP buffers
	CPUs   float64 // processors kept busy; less than 0.01 counts as 0.01
	Pids   int64   // tasks: processes and threads
}

// Usage is what a group and its descendants use, and have used since it was made.
// In a group of a [Pool], a little of the memory may be what the one before has left.
type Usage struct {
	CPU         time.Duration // processor time, user and system
	Memory      int64         // bytes now
	PeakMemory  int64         // bytes; 0 on v2 before Linux 5.19, which doesn't tell
	PeakPids    int64         // tasks at one time; 0 before Linux 6.1, which doesn't tell
	OOMKills    int64         // processes killed for want of memory; on v1 not those of descendants
	PidsRefused int64         // forks refused by the limit on tasks; on v1, also by Kill
}

// Group is a cgroup: on v2 one directory, on v1 one in each of five hierarchies.
// Its methods may be called from several goroutines at once.
type Group struct {
	path   string
	on     backend
	limits Limits

	earlierKills int64 // for memory, of the pool's groups before it

	mu    sync.RWMutex // held for reading while the directories are used
	ended bool         // deleted by its pool: the directories may be another group's
}

// backend is what v1 and v2 do differently. Paths are those of [New].
type backend interface {
	dirs(path string) []string      // where the group is in the file system
	otherDirs(path string) []string // where a top group is, besides
	makeTop(path string, rules []specs.LinuxDeviceCgroup) error
	joinFile() string // in each of dirs
	create(path string, l Limits) error
	addPID(path string, pid int) error

	// kill is one attempt, the nth from 0, which doesn't wait for who is killed.
	kill(path string, n int) (empty bool, err error)

	usage(path string) (Usage, error)
	socketMemory(path string) (int64, error)

	// retire deletes all of an empty group but what a [Pool] reuses.
	retire(path string) error

	// reuse prepares what retire has left of a group with the limits old for one with
	// the limits l, and returns how many memory kills it has counted so far. It reports
	// false if too much is charged to it.
	reuse(path string, old, l Limits) (kills int64, ok bool)
}

// New makes the group at path, such as "/gaol/j17/r1", which counts from the
// root of the hierarchy. Missing parents are made, without limits, and are never
// removed here. A group that exists already gets the limits and keeps its
// counters.
func New(path string, l Limits) (*Group, error) {
	on, err := thisMachine()
	if err != nil {
		return nil, err
	}
	return newGroup(on, path, l)
}

func newGroup(on backend, path string, l Limits) (*Group, error) {
	if err := check(path, l); err != nil {
		return nil, err
	}
	g := &Group{path: path, on: on, limits: l}
	if err := g.create(); err != nil {
		return nil, err
	}
	return g, nil
}

// Preconditions: check has no objection.
func (g *Group) create() error {
	if err := g.on.create(g.path, g.limits); err != nil {
		return errors.Join(fmt.Errorf("cgroup: make %s: %w", g.path, err), g.Delete())
	}
	return nil
}

// Open names an existing group, to end and remove what an earlier process left
// behind. It does not look whether the group is there: for Kill and Delete a
// missing group is an empty one.
func Open(path string) (*Group, error) {
	on, err := thisMachine()
	if err != nil {
		return nil, err
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return &Group{path: path, on: on}, nil
}

func check(path string, l Limits) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if l.Memory < 0 || !(l.CPUs >= 0) || l.Pids < 0 { // !(>=) refuses NaN too
		return fmt.Errorf("cgroup: make %s: negative limit in %+v", path, l)
	}
	return nil
}

// checkPath keeps a mistake from reaching the root group or climbing out of the
// mount: what comes next is killing all that is in there.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("cgroup: path %q is not absolute, clean and below the root", path)
	}
	return nil
}

// Path is the group's path, as given to [New].
func (g *Group) Path() string { return g.path }

// Dirs are the group's directories in the host's file system, one for each
// hierarchy. On v2 an open one is what clone3's CLONE_INTO_CGROUP wants,
// the quickest way in.
func (g *Group) Dirs() []string { return g.on.dirs(g.path) }

// JoinFiles are the files to which a process with a single thread writes "0", in
// this order, to put itself into the group. On v1 that takes 0.15 ms for all five,
// where [Group.AddPID] takes 10: a thread that moves only itself need not wait for
// every processor to pass through a quiet state, once for each hierarchy. The
// order begins with the freezer's, by which Kill finds processes.
func (g *Group) JoinFiles() []string {
	files := g.Dirs()
	for i, d := range files {
		files[i] = filepath.Join(d, g.on.joinFile())
	}
	return files
}

// AddPID moves a process, with all its threads, into the group. It takes some 10 ms
// when no other was moved just before: see [Group.JoinFiles] for what doesn't.
func (g *Group) AddPID(pid int) error {
	if pid <= 0 { // the kernel takes 0 for the caller itself
		return fmt.Errorf("cgroup: add to %s: bad pid %d", g.path, pid)
	}
	if err := g.use(func() error { return g.on.addPID(g.path, pid) }); err != nil {
		return fmt.Errorf("cgroup: add pid %d to %s: %w", pid, g.path, err)
	}
	return nil
}

// PIDs lists the group's processes, without those of descendant groups. A group that
// does not exist has none.
func (g *Group) PIDs() (pids []int, err error) {
	err = g.use(func() error {
		pids, err = listProcs(g.Dirs()[:1])
		return err
	})
	if gone(err) != nil {
		return nil, fmt.Errorf("cgroup: processes of %s: %w", g.path, err)
	}
	return pids, nil
}

// Usage reads the group's counters.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	err := g.use(func() (err error) {
		u, err = g.on.usage(g.path)
		return err
	})
	if err != nil {
		return Usage{}, fmt.Errorf("cgroup: usage of %s: %w", g.path, err)
	}
	u.OOMKills -= g.earlierKills
	return u, nil
}

var errEnded = fmt.Errorf("%w: its pool has deleted it", fs.ErrNotExist)

// use calls f unless the pool has deleted the group, which it can't do meanwhile.
func (g *Group) use(f func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.ended {
		return errEnded
	}
	return f()
}
