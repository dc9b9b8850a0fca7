package harness

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Inventory lists what exists of the jails below Parent, and of this process.
type Inventory struct {
	Processes []string // pids in jails
	cgroups   []string
	state     []string // in /run/gaol/jails
	mounts    []string // of this process
	temp      []string // in the temporary folder
	Disks     []string // files of loop devices, which are the trees of runtimes
	fds       int      // of this process
}

// TakeInventory lists what exists now.
func TakeInventory() Inventory {
	groups := JailCgroups()
	return Inventory{
		Processes: ProcessesIn(groups),
		cgroups:   groups,
		state:     JailState(),
		mounts:    ownMounts(),
		temp:      Glob(os.TempDir() + "/*"),
		Disks:     disks(),
		fds:       OpenDescriptors(),
	}
}

// disks lists the files of loop devices that have no name.
func disks() (list []string) {
	for _, file := range Glob("/sys/block/loop*/loop/backing_file") {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "/#") { // it can be detached meanwhile
			list = append(list, strings.TrimSpace(string(text)))
		}
	}
	return list
}

// ownMounts lists the mounts of this process, except those in the temporary folders of
// other test processes.
func ownMounts() []string {
	var own []string
	for _, line := range Lines("/proc/self/mountinfo") {
		if !strings.Contains(line, "/gaol-test-") || strings.Contains(line, os.TempDir()) {
			own = append(own, line)
		}
	}
	return own
}

// CheckLeaks fails the test if something exists that the inventory does not list. Killed
// processes have time to end.
func (before Inventory) CheckLeaks(t testing.TB) {
	t.Helper()
	if left := before.leaks(); len(left) > 0 {
		t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	}
}

// leaks returns the objects that are not removed in time. Disks may be of tests of other packages, which may use
// them for minutes.
func (before Inventory) leaks() []string {
	first := before.Added()
	isDisk := func(s string) bool { return strings.HasPrefix(s, "disk ") }
	deadline, ofDisks := time.Now().Add(20*time.Second), time.Now().Add(4*time.Minute)
	for ; ; time.Sleep(20 * time.Millisecond) {
		now := before.Added()
		left := slices.DeleteFunc(slices.Clone(first), func(s string) bool { return !slices.Contains(now, s) })
		if len(left) == 0 || time.Now().After(ofDisks) || time.Now().After(deadline) && !slices.ContainsFunc(left, isDisk) {
			return left
		}
	}
}

// Added lists what exists now and is not in the inventory.
func (before Inventory) Added() []string {
	var found []string
	now := TakeInventory()
	for _, kind := range []struct {
		name        string
		before, now []string
	}{
		{"process", before.Processes, now.Processes},
		{"cgroup", before.cgroups, now.cgroups},
		{"mount", before.mounts, now.mounts},
		{"state", before.state, now.state},
		{"temp", before.temp, now.temp},
		{"disk", before.Disks, now.Disks},
	} {
		for _, s := range kind.now {
			if !slices.Contains(kind.before, s) {
				found = append(found, kind.name+" "+s)
			}
		}
	}
	// With its first jail a process opens the root of the cgroups, and Go its poller.
	// Both stay open.
	const kept = 4
	if now.fds > before.fds+kept {
		found = append(found, fmt.Sprintf("more than %d file descriptors", before.fds+kept))
	}
	return found
}

// CheckNoRuns fails the test if jails have processes other than their reapers, if a run
// has a cgroup, or if this process has a child that ended and was not reaped. A process that was
// forked in advance has time to end.
func CheckNoRuns(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left := leftRuns()
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Error(strings.Join(left, "\n"))
			break
		}
	}
	for _, path := range Glob("/proc/[0-9]*/stat") {
		_, fields, _ := strings.Cut(Lines(path)[0], ") ")
		if strings.HasPrefix(fields, "Z "+strconv.Itoa(os.Getpid())+" ") {
			t.Errorf("%s: a zombie", path)
		}
	}
}

// leftRuns describes the cgroups and processes of runs.
func leftRuns() (left []string) {
	if runs := LiveRuns(); runs > 0 {
		left = append(left, fmt.Sprintf("%d runs have a cgroup", runs))
	}
	if InGVisor() { // its processes are not runs
		return left
	}
	for _, pid := range JailProcesses() {
		if name := Lines("/proc/" + pid + "/comm")[0]; name != "catatonit" && name != "" {
			left = append(left, fmt.Sprintf("process %s, %s, is left", pid, name))
		}
	}
	return left
}
