package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gaol/runtime"
)

// TestMain fails the package if anything of ours is left when its tests are done.
func TestMain(m *testing.M) {
	before := takeInventory()
	code := m.Run()
	if left := settle(before); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left behind:\n  %s\n", strings.Join(left, "\n  "))
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// create makes a runtime that is closed when the test ends.
func create(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
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

// run runs a program and fails the test if gaol could not.
func run(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) *runtime.Result {
	t.Helper()
	res, err := rt.Run(t.Context(), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// inventory is what this machine holds that could be a sandbox's.
type inventory struct {
	processes []string // under the ids that jails use
	cgroups   []string // below /gaol
	mounts    []string // of this process
	state     []string // in /run/gaol/jails
	temp      []string // in the system's temporary folder
	fds       int      // of this process
}

func takeInventory() inventory {
	fds, _ := os.ReadDir("/proc/self/fd")
	return inventory{
		processes: guestProcesses(),
		cgroups:   glob("/sys/fs/cgroup/*/gaol/*", "/sys/fs/cgroup/gaol/*/*"),
		mounts:    lines("/proc/self/mountinfo"),
		state:     glob("/run/gaol/jails/*"),
		temp:      glob(os.TempDir() + "/gaol*"),
		fds:       len(fds),
	}
}

// settle compares with an earlier inventory, giving processes that were killed a
// moment to be gone.
func settle(before inventory) []string {
	var left []string
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
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

// guestProcesses lists the processes whose user is in the range of jails, see
// package jail.
func guestProcesses() []string {
	var found []string
	for _, status := range glob("/proc/[0-9]*/status") {
		var name string
		var uid int64
		for _, line := range lines(status) {
			_, _ = fmt.Sscanf(line, "Name: %s", &name)
			_, _ = fmt.Sscanf(line, "Uid: %d", &uid)
		}
		if uid >= 0x70000000 && uid < 0x80000000 {
			found = append(found, status+" "+name)
		}
	}
	return found
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
