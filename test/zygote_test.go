package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// zygoteGroups are the cgroups of the zygotes that this process started.
func zygoteGroups() []string {
	name := fmt.Sprintf("/zygote-%d-*", os.Getpid())
	return glob("/sys/fs/cgroup"+parent+name, "/sys/fs/cgroup/*"+parent+name)
}

// myZygotes are the zygotes that this process started. A child of one that is just
// leaving its group has entered a pid namespace before.
func myZygotes(t *testing.T) []int {
	t.Helper()
	namespaces := len(strings.Fields(statusOf("self")["NSpid"]))
	var found []int
	for _, pid := range processesIn(zygoteGroups()) {
		if len(strings.Fields(statusOf(pid)["NSpid"])) == namespaces {
			n, _ := strconv.Atoi(pid)
			found = append(found, n)
		}
	}
	return found
}

// A zygote that is killed while runs come and go costs none of them more than time.
func TestZygoteIsReplaced(t *testing.T) {
	o := ours(runtime.Options{})
	o.Launcher = runtime.LauncherZygote
	rt := createAs(t, o)
	run(t, rt, ``, runtime.RunOptions{})
	before := myZygotes(t)
	if len(before) == 0 {
		t.Fatal("there is no zygote")
	}
	var runs sync.WaitGroup
	for range 40 {
		runs.Go(func() {
			res, err := rt.Run(t.Context(), `__return(1)`, runtime.RunOptions{})
			if err != nil || string(res.Value) != "1" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	for _, pid := range before {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	runs.Wait()
	for _, pid := range myZygotes(t) {
		for _, old := range before {
			if pid == old {
				t.Errorf("%d is still there", pid)
			}
		}
	}
}

// A zygote holds nothing but its socket, and what Node itself has open.
func TestZygoteHoldsNothing(t *testing.T) {
	o := ours(runtime.Options{})
	o.Launcher = runtime.LauncherZygote
	run(t, createAs(t, o), ``, runtime.RunOptions{})
	zygotes := myZygotes(t)
	if len(zygotes) == 0 {
		t.Fatal("there is no zygote")
	}
	dir := "/proc/" + strconv.Itoa(zygotes[0])
	sockets := 0
	for _, fd := range glob(dir + "/fd/*") {
		to, _ := os.Readlink(fd)
		switch {
		case strings.HasPrefix(to, "socket:"):
			sockets++
		case to != "/dev/null" && to != "/" && !strings.HasPrefix(to, "pipe:") && !strings.HasPrefix(to, "anon_inode:[event"):
			t.Errorf("%s is %s", fd, to)
		}
	}
	if sockets != 1 {
		t.Errorf("%d sockets", sockets)
	}
	if mounts := lines(dir + "/mountinfo"); len(mounts) != 1 || !strings.Contains(mounts[0], " / / ro") {
		t.Errorf("mounts: %q", mounts)
	}
}
