package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parents lists the folders of Parent, and of the cgroups that servers make in it for tenants.
func parents() []string {
	tenants := Glob("/sys/fs/cgroup/*"+Parent+"/tenants/*", "/sys/fs/cgroup"+Parent+"/tenants/*")
	return append(tenants, Glob("/sys/fs/cgroup/*"+Parent, "/sys/fs/cgroup"+Parent)...)
}

// JailCgroups lists the cgroups of jails and runs below Parent, and those of zygotes that
// belong to other processes. With cgroup v1 it lists them in every hierarchy.
func JailCgroups() []string {
	var groups []string
	for _, parent := range parents() {
		for _, procs := range Glob(parent+"/j*/cgroup.procs", parent+"/j*/*/cgroup.procs") {
			groups = append(groups, filepath.Dir(procs))
		}
		for _, zygote := range Glob(parent + "/zygote-*") {
			if !isOwnZygote(zygote) {
				groups = append(groups, zygote)
			}
		}
	}
	return groups
}

// isOwnZygote reports whether a cgroup is that of a zygote which this process has started, or an agent of it.
func isOwnZygote(group string) bool {
	_, rest, _ := strings.Cut(filepath.Base(group), "zygote-")
	pid, _, _ := strings.Cut(rest, "-")
	own := strconv.Itoa(os.Getpid())
	return pid == own || ProcessStatus(pid)["PPid"] == own
}

// ProcessesIn lists the pids in some cgroups, each once.
func ProcessesIn(groups []string) []string {
	var pids []string
	for _, g := range groups {
		for _, pid := range Lines(filepath.Join(g, "cgroup.procs")) {
			if pid != "" && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// JailProcesses lists the pids in jails. It leaves out the processes that work for sandboxes, which are this
// program.
func JailProcesses() []string {
	own, err := os.Readlink("/proc/self/exe")
	return slices.DeleteFunc(ProcessesIn(JailCgroups()), func(pid string) bool {
		program, failed := os.Readlink("/proc/" + pid + "/exe")
		return err == nil && failed == nil && program == own
	})
}

// JailState lists the files in /run/gaol of jails whose claim names Parent.
func JailState() []string {
	var found []string
	for _, slot := range Glob("/run/gaol/jails/*.slot") {
		if claim := strings.Join(Lines(slot), ""); strings.Contains(claim, `"`+Parent+`"`) || strings.Contains(claim, `"`+Parent+`/tenants/`) {
			number := strings.TrimSuffix(filepath.Base(slot), ".slot")
			found = append(append(found, slot), Glob("/run/gaol/oci/j"+number)...)
		}
	}
	return found
}

// RemoveParent removes the cgroup Parent. gaol leaves it, because several processes may
// use the same one.
func RemoveParent() {
	tenants := Glob("/sys/fs/cgroup/*"+Parent+"/tenants", "/sys/fs/cgroup"+Parent+"/tenants")
	all := parents() // tenants' are first
	for _, dir := range slices.Concat(all, tenants, all) {
		_ = os.Remove(dir) // it fails if cgroups are left in it, which the leak check reports
	}
}

// LiveRuns counts the runs that have a cgroup below Parent. Groups of cgroup v1 are kept for later
// runs; those in the v2 hierarchy beside it are not.
func LiveRuns() int {
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(mount + "/cgroup.controllers"); err == nil {
			return len(Glob(mount + Parent + "/j*/r*"))
		}
	}
	live := 0
	for _, group := range Glob("/sys/fs/cgroup/pids" + Parent + "/j*/r*") {
		live += min(1, len(ProcessesIn([]string{group})))
	}
	return live
}

// ZygoteCgroups lists the cgroups of the zygotes that this process started.
func ZygoteCgroups() []string {
	const name = "/zygote-*"
	all := Glob("/sys/fs/cgroup"+Parent+name, "/sys/fs/cgroup/*"+Parent+name)
	return slices.DeleteFunc(all, func(group string) bool { return !isOwnZygote(group) })
}

// Zygotes lists the zygotes that this process started. It leaves out a zygote's child
// that has entered its pid namespace and is about to leave the cgroup.
func Zygotes(t testing.TB) []int {
	t.Helper()
	namespaces := len(strings.Fields(ProcessStatus("self")["NSpid"]))
	var found []int
	for _, pid := range ProcessesIn(ZygoteCgroups()) {
		if len(strings.Fields(ProcessStatus(pid)["NSpid"])) == namespaces {
			n, _ := strconv.Atoi(pid)
			found = append(found, n)
		}
	}
	return found
}
