package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/runtime"
)

// tenantIdle is how long a tenant's cgroup is kept after its last sandbox.
const tenantIdle = time.Minute

// tenants knows which tenants have sandboxes, and removes the leftovers of the others: their cgroups, and the
// Nodes that runs are forked from if no tenant uses them. These Nodes have run no tenant's code, and are in the
// parent group: all tenants share them.
type tenants struct {
	parent    string // of their cgroups
	log       *slog.Logger
	idle      time.Duration
	closeIdle func() error // of the runtime
	shared    bool         // parent also has jails of other programs: there are no cgroups of tenants

	mu     sync.Mutex
	byName map[string]*presence
	closed bool
	work   sync.WaitGroup
}

// presence is a tenant with a cgroup.
type presence struct {
	uses  int // sandboxes and pools, also while they are created
	timer *time.Timer
}

func newTenants(parent string, log *slog.Logger) *tenants {
	return &tenants{parent: parent, log: log, idle: tenantIdle, closeIdle: runtime.CloseIdle, byName: map[string]*presence{}}
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
	p := ts.byName[name]
	if p == nil {
		p = &presence{}
		ts.byName[name] = p
	}
	p.uses++
	if p.timer != nil && p.timer.Stop() {
		ts.work.Done()
	}
	p.timer = nil
	return sync.OnceFunc(func() { ts.leave(name, p) })
}

func (ts *tenants) leave(name string, p *presence) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	p.uses--
	if p.uses == 0 && !ts.closed {
		ts.schedule(name, p)
	}
}

// schedule removes the tenant's cgroup later.
//
// Preconditions: ts.mu is held, and no timer of the tenant is active.
func (ts *tenants) schedule(name string, p *presence) {
	ts.work.Add(1)
	p.timer = time.AfterFunc(ts.idle, func() {
		defer ts.work.Done()
		ts.expire(name, p)
	})
}

// expire removes the cgroup of a tenant if it is still without sandboxes.
func (ts *tenants) expire(name string, p *presence) {
	// The lock is not held: this waits for processes. It may close Nodes of tenants that have no sandbox
	// at the moment, which start again when they are needed.
	if err := ts.closeIdle(); err != nil {
		ts.log.Error("close idle Nodes", "err", err)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if p.uses > 0 || ts.closed {
		return
	}
	if removeCgroup(ts.cgroup(name)) {
		delete(ts.byName, name)
		return
	}
	ts.schedule(name, p)
}

// close removes all cgroups. All sandboxes are closed.
func (ts *tenants) close() {
	ts.mu.Lock()
	ts.closed = true
	for _, p := range ts.byName {
		if p.timer != nil && p.timer.Stop() {
			ts.work.Done()
		}
	}
	ts.mu.Unlock()
	ts.work.Wait()
	deadline := time.Now().Add(time.Second)
	if ts.shared {
		return
	}
	for name := range ts.byName {
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
