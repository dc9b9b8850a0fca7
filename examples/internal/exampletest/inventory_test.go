package exampletest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gaol/runtime"
)

// The inventory finds a runtime that is not closed, and nothing after Close.
func TestInventory(t *testing.T) {
	parent := fmt.Sprintf("/gaol-inventory-%d", os.Getpid())
	before := takeInventory(parent)
	rt, err := runtime.Create(t.Context(), runtime.Options{CgroupParent: parent, Launcher: runtime.LauncherExec})
	if err != nil {
		t.Fatal(err)
	}
	now := takeInventory(parent)
	if len(now.state) != 1 || !strings.Contains(strings.Join(now.cgroup, " "), "cgroup.procs") {
		t.Errorf("a live runtime has the state %v and the cgroups %v", now.state, now.cgroup)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if left := before.leftovers(parent); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
