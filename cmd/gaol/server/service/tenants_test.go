package service

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"gaol/jail/cgroup"
)

// newTestTenants returns tenants that are closed at the end of the test.
func newTestTenants(t *testing.T) *tenants {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes cgroups: needs root")
	}
	ts := &tenants{parent: "/gaol-test-tenants", log: slog.New(slog.DiscardHandler), uses: map[string]int{}}
	t.Cleanup(ts.close)
	return ts
}

// dirsOf returns a cgroup's folders in all hierarchies.
func dirsOf(t *testing.T, path string) []string {
	t.Helper()
	g, err := cgroup.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return append(g.Dirs(), g.OtherDirs()...)
}

func makeCgroup(t *testing.T, path string) {
	t.Helper()
	for _, dir := range dirsOf(t, path) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// exists reports in how many hierarchies a cgroup is.
func exists(t *testing.T, path string) (n int) {
	t.Helper()
	for _, dir := range dirsOf(t, path) {
		if _, err := os.Stat(dir); err == nil {
			n++
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	return n
}

// The cgroup of a tenant is removed after its last sandbox has been closed, when another tenant creates one.
func TestTenantExpires(t *testing.T) {
	ts := newTestTenants(t)
	first, second := ts.use("uid:1"), ts.use("uid:1")
	makeCgroup(t, ts.cgroup("uid:1"))
	first()
	first() // does nothing
	ts.use("uid:9")
	if exists(t, ts.cgroup("uid:1")) == 0 {
		t.Error("it is removed while it is in use")
	}
	second()
	ts.use("uid:10")
	if n := exists(t, ts.cgroup("uid:1")); n != 0 {
		t.Errorf("it exists in %d hierarchies", n)
	}
}

// A cgroup in use by another server stays, and is tried again.
func TestTenantStaysInUse(t *testing.T) {
	ts := newTestTenants(t)
	done := ts.use("uid:2")
	child := ts.cgroup("uid:2") + "/j0"
	makeCgroup(t, child)
	done()
	ts.use("uid:9")
	if exists(t, child) == 0 {
		t.Error("a child was removed")
	}
	for _, dir := range dirsOf(t, child) {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}
	ts.use("uid:10")
	if n := exists(t, ts.cgroup("uid:2")); n != 0 {
		t.Errorf("it exists in %d hierarchies", n)
	}
}

// Close removes the cgroups of all tenants, and their parent.
func TestTenantsClose(t *testing.T) {
	ts := newTestTenants(t)
	for _, name := range []string{"uid:1", "token:a", "uid:3"} {
		done := ts.use(name)
		makeCgroup(t, ts.cgroup(name))
		done()
	}
	ts.close()
	if n := exists(t, ts.parent); n != 0 {
		t.Errorf("it exists in %d hierarchies", n)
	}
}

// A server removes the empty cgroups of a killed one, but none that a jail of another server is about to enter.
func TestRemoveEmpty(t *testing.T) {
	ts := newTestTenants(t)
	makeCgroup(t, filepath.Join(ts.parent, "uid-9"))
	makeCgroup(t, filepath.Join(ts.parent, "uid-8", "j1"))
	makeCgroup(t, filepath.Join(ts.parent, "j2"))
	ts.removeEmpty()
	if exists(t, ts.parent+"/uid-9") != 0 || exists(t, ts.parent+"/uid-8/j1") == 0 || exists(t, ts.parent+"/j2") == 0 {
		t.Error("wrong cgroups were removed")
	}
	for _, path := range []string{"/uid-8/j1", "/uid-8", "/j2"} {
		if !removeCgroup(ts.parent + path) {
			t.Error(path)
		}
	}
}

// Names of tenants cannot lead out of the parent, or collide.
func TestCgroupNames(t *testing.T) {
	ts := &tenants{parent: "/p", log: slog.New(slog.DiscardHandler), uses: map[string]int{}}
	seen := map[string]bool{}
	for _, name := range []string{"uid:0", "uid:4294967294", "token:a", "token:a.b", "token:uid-0", "token:0"} {
		path := ts.cgroup(name)
		if seen[path] || filepath.Dir(path) != "/p" {
			t.Errorf("%s: %s", name, path)
		}
		seen[path] = true
	}
}
