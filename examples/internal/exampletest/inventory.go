package exampletest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// inventory lists what runtimes below one cgroup parent occupy on this machine.
type inventory struct {
	state  []string // slots in /run/gaol/jails that name the parent
	cgroup []string
	mounts []string // of this process
}

func takeInventory(parent string) inventory {
	var i inventory
	for _, slot := range glob("/run/gaol/jails/*.slot") {
		if strings.Contains(read(slot), `"`+parent+`"`) {
			i.state = append(i.state, slot)
		}
	}
	// cgroup v2 has one hierarchy, v1 one for each controller.
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		i.cgroup = append(i.cgroup, glob(root+parent+"/*/cgroup.procs")...)
	}
	i.mounts = strings.Split(read("/proc/self/mountinfo"), "\n")
	return i
}

// leftovers compares with the present. It removes the empty parent, which gaol keeps for other
// processes, and waits up to 20 seconds for killed processes to disappear.
func (i inventory) leftovers(parent string) []string {
	var left []string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		now := takeInventory(parent)
		left = slices.Concat(added(i.state, now.state), added(i.cgroup, now.cgroup), added(i.mounts, now.mounts))
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, dir := range glob("/sys/fs/cgroup"+parent, "/sys/fs/cgroup/*"+parent) {
		if err := os.Remove(dir); err != nil {
			left = append(left, err.Error())
		}
	}
	return left
}

func added(before, after []string) []string {
	return slices.DeleteFunc(after, func(s string) bool { return slices.Contains(before, s) })
}

func glob(patterns ...string) []string {
	var found []string
	for _, p := range patterns {
		matches, _ := filepath.Glob(p)
		found = append(found, matches...)
	}
	return found
}

// read returns an empty string for a file that has disappeared meanwhile.
func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
