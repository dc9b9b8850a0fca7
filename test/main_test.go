package test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gaol/policy"
	"gaol/runtime"
)

// TestMain fails the package if anything of ours is left when its tests are done.
func TestMain(m *testing.M) {
	temp, err := os.MkdirTemp("", "gaol-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("TMPDIR", temp) // what is left in there is ours
	before := takeInventory()
	code := m.Run()
	if err := runtime.CloseIdle(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	removeParent()
	if left := settle(before); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left behind:\n  %s\n", strings.Join(left, "\n  "))
		code = 1
	}
	os.RemoveAll(temp)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// parentVar hands the cgroup parent of the tests on to programs that they start.
const parentVar = "GAOL_TEST_CGROUP"

// parent is the cgroup that these tests make their jails in. It tells them from
// jails that others on this machine make at the same time.
var parent = cmp.Or(os.Getenv(parentVar), fmt.Sprintf("/gaol-test-%d", os.Getpid()))

// Variables that choose what the tests run on, besides the defaults. They reach
// programs that tests start, too. To run them all with another Node:
//
//	gaol image build --node 22 --name node-22
//	GAOL_TEST_IMAGE=node-22 go test ./test
const (
	storeVar    = "GAOL_TEST_STORE"
	imageVar    = "GAOL_TEST_IMAGE"
	launcherVar = "GAOL_TEST_LAUNCHER"
)

// launchers are all there are. TestLaunchers runs every test that makes runs with
// each of them but the default one, which they have anyway.
var launchers = []runtime.Launcher{runtime.LauncherZygote, runtime.LauncherExec}

// ours makes a runtime one of these tests'.
func ours(o runtime.Options) runtime.Options {
	o.CgroupParent = parent
	o.Store = cmp.Or(o.Store, os.Getenv(storeVar))
	o.Image = cmp.Or(o.Image, os.Getenv(imageVar))
	if o.Permissions.IsZero() {
		o.Permissions.Network = policy.Loopback() // which is more to attack than the default
	}
	for _, l := range launchers {
		if l.String() == os.Getenv(launcherVar) {
			o.Launcher = l
		}
	}
	return o
}

// create makes a runtime that is closed when the test ends.
func create(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	return createAs(t, ours(o))
}

// createAs is create with the options as they are.
func createAs(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	rt, err := runtime.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// createForking is create with the zygote, whatever the tests run on.
func createForking(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	o = ours(o)
	o.Launcher = runtime.LauncherZygote
	return createAs(t, o)
}

// run runs a program and fails the test if gaol could not.
func run(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) *runtime.Result {
	t.Helper()
	res, err := rt.Run(t.Context(), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// inventory is what this machine holds of the jails below parent, and what this
// process has.
type inventory struct {
	processes []string // pids
	cgroups   []string
	state     []string // in /run/gaol/jails
	mounts    []string // of this process
	temp      []string // in the system's temporary folder
	fds       int      // of this process
}

func takeInventory() inventory {
	fds, _ := os.ReadDir("/proc/self/fd")
	groups := jailGroups()
	return inventory{
		processes: processesIn(groups),
		cgroups:   groups,
		state:     jailState(),
		mounts:    lines("/proc/self/mountinfo"),
		temp:      glob(os.TempDir() + "/*"),
		fds:       len(fds),
	}
}

// jailGroups lists the groups of jails, of their runs and of zygotes that no
// process has any more, on v1 and v2.
func jailGroups() []string {
	var groups []string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		for _, procs := range glob(root+parent+"/j*/cgroup.procs", root+parent+"/j*/*/cgroup.procs") {
			groups = append(groups, filepath.Dir(procs))
		}
		for _, zygote := range glob(root + parent + "/zygote-*") {
			if !strings.HasPrefix(filepath.Base(zygote), fmt.Sprintf("zygote-%d-", os.Getpid())) {
				groups = append(groups, zygote)
			}
		}
	}
	return groups
}

func processesIn(groups []string) []string {
	var pids []string
	for _, g := range groups {
		for _, pid := range lines(filepath.Join(g, "cgroup.procs")) {
			if pid != "" && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// jailState lists what is registered of jails whose claim names our parent.
func jailState() []string {
	var found []string
	for _, slot := range glob("/run/gaol/jails/*.slot") {
		if strings.Contains(strings.Join(lines(slot), ""), `"`+parent+`"`) {
			number := strings.TrimSuffix(filepath.Base(slot), ".slot")
			found = append(append(found, slot), glob("/run/gaol/jails/j"+number)...)
		}
	}
	return found
}

// settle compares with an earlier inventory, giving processes that were killed a
// moment to be gone.
func settle(before inventory) []string {
	var left []string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if left = added(before, takeInventory()); len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

func added(before, after inventory) []string {
	var found []string
	for _, kind := range []struct {
		name          string
		before, after []string
	}{
		{"process", before.processes, after.processes},
		{"cgroup", before.cgroups, after.cgroups},
		{"mount", before.mounts, after.mounts},
		{"state", before.state, after.state},
		{"temp", before.temp, after.temp},
	} {
		for _, s := range kind.after {
			if !slices.Contains(kind.before, s) {
				found = append(found, kind.name+" "+s)
			}
		}
	}
	// The first jail of a process opens the cgroups' root, and Go its poller, for good.
	const kept = 4
	if after.fds > before.fds+kept {
		found = append(found, fmt.Sprintf("%d file descriptors, %d before", after.fds, before.fds))
	}
	return found
}

// removeParent removes the group that gaol made for all jails and keeps, as any
// number of processes may use it.
func removeParent() {
	for _, dir := range glob("/sys/fs/cgroup/*"+parent, "/sys/fs/cgroup"+parent) {
		_ = os.Remove(dir) // what is in there is reported as left behind
	}
}

func glob(patterns ...string) []string {
	var all []string
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		all = append(all, found...)
	}
	return all
}

func lines(path string) []string {
	text, _ := os.ReadFile(path) // a process may have ended
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
