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

// tenants knows which tenants have sandboxes, and removes the cgroups of others.
type tenants struct {
	parent string // of their cgroups
	log    *slog.Logger
	shared bool // parent also has jails of other programs: there are no cgroups of tenants

	mu   sync.Mutex
	uses map[string]int // sandboxes and pools of a tenant with a cgroup, also while they are created
}

func newTenants(parent string, log *slog.Logger) *tenants {
	return &tenants{parent: parent, log: log, uses: map[string]int{}}
}

// cgroup is the parent of a tenant's jails, so that tenants share the processors equally.
func (ts *tenants) cgroup(name string) string {
	if ts.shared {
		return ts.parent
	}
	return filepath.Join(ts.parent, strings.ReplaceAll(name, ":", "-"))
}

// use keeps the cgroup of a tenant until done is called. For a tenant without one it removes the cgroups of tenants without
// sandboxes first, so that there are not many more than tenants were active at the same time.
func (ts *tenants) use(name string) (done func()) {
	if ts.shared {
		return func() {}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if _, known := ts.uses[name]; !known {
		maps.DeleteFunc(ts.uses, func(name string, n int) bool { return n == 0 && removeCgroup(ts.cgroup(name)) })
	}
	ts.uses[name]++
	return sync.OnceFunc(func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		ts.uses[name]--
	})
}

// close removes all cgroups. All sandboxes are closed.
func (ts *tenants) close() {
	if ts.shared {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	deadline := time.Now().Add(time.Second)
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
