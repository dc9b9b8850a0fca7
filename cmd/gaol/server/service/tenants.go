package service

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

// tenantIdle is how long a tenant's cgroup is kept, at most, after its last sandbox.
const tenantIdle = time.Minute

// tenants knows which tenants have sandboxes, and removes the cgroups of the others.
type tenants struct {
	parent string // of their cgroups
	log    *slog.Logger
	idle   time.Duration
	shared bool // parent also has jails of other programs: there are no cgroups of tenants

	mu     sync.Mutex
	uses   map[string]int // sandboxes and pools of a tenant with a cgroup, also while they are created
	timer  *time.Timer    // of the next sweep; nil: none is due
	closed bool
}

func newTenants(parent string, log *slog.Logger) *tenants {
	return &tenants{parent: parent, log: log, idle: tenantIdle, uses: map[string]int{}}
}

// cgroup is the parent of a tenant's jails, so that tenants share the processors equally.
func (ts *tenants) cgroup(name string) string {
	if ts.shared {
		return ts.parent
	}
	return filepath.Join(ts.parent, strings.ReplaceAll(name, ":", "-"))
}

// use keeps the cgroup of a tenant until done is called.
func (ts *tenants) use(name string) (done func()) {
	if ts.shared {
		return func() {}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.uses[name]++
	return sync.OnceFunc(func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		ts.uses[name]--
		ts.schedule()
	})
}

// schedule starts a sweep later if a tenant has no sandboxes.
//
// Preconditions: ts.mu is held.
func (ts *tenants) schedule() {
	for _, n := range ts.uses {
		if n == 0 && ts.timer == nil && !ts.closed {
			ts.timer = time.AfterFunc(ts.idle, ts.sweep)
		}
	}
}

// sweep removes the cgroups of tenants without sandboxes, and tries again later if a cgroup is busy.
func (ts *tenants) sweep() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.timer = nil
	maps.DeleteFunc(ts.uses, func(name string, n int) bool { return n == 0 && removeCgroup(ts.cgroup(name)) })
	ts.schedule()
}

// close removes all cgroups. All sandboxes are closed.
func (ts *tenants) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	if ts.timer != nil {
		ts.timer.Stop()
	}
	deadline := time.Now().Add(time.Second)
	if ts.shared {
		return
	}
	for name := range ts.uses {
		for !removeCgroup(ts.cgroup(name)) {
			if time.Now().After(deadline) {
				ts.log.Error("a cgroup remains", "path", ts.cgroup(name))
				break
			}
			time.Sleep(time.Millisecond) // the kernel needs a moment after the last process
		}
	}
	removeCgroup(ts.parent)
}

// removeEmpty removes cgroups that a killed server has left.
func (ts *tenants) removeEmpty() {
	if ts.shared {
		return // another program may be about to use one
	}
	parent, err := cgroup.Open(ts.parent)
	if err != nil {
		return
	}
	for _, dir := range append(parent.Dirs(), parent.OtherDirs()...) {
		entries, _ := os.ReadDir(dir) // missing: there is nothing to remove
		for _, e := range entries {
			if e.IsDir() {
				_ = unix.Rmdir(filepath.Join(dir, e.Name())) // fails for groups in use
			}
		}
	}
}

// removeCgroup removes a cgroup without children in all hierarchies, and reports whether none is left.
func removeCgroup(path string) bool {
	g, err := cgroup.Open(path)
	if err != nil {
		return false
	}
	gone := true
	for _, dir := range append(g.Dirs(), g.OtherDirs()...) {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			gone = false
		}
	}
	return gone
}
