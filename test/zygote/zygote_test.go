package zygote

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// When a zygote is killed during runs, the runs take longer, but none fails.
func TestZygoteIsReplaced(t *testing.T) {
	harness.RequireZygotes(t)
	o := harness.Forking(runtime.Options{})
	rt := harness.CreateExact(t, o)
	harness.Run(t, rt, ``, runtime.RunOptions{})
	before := harness.Zygotes(t)
	if len(before) == 0 {
		t.Fatal("no zygote is running")
	}
	var runs sync.WaitGroup
	for range harness.Fewer(40, 15) {
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
	for _, pid := range harness.Zygotes(t) {
		for _, old := range before {
			if pid == old {
				t.Errorf("%d is still there", pid)
			}
		}
	}
}

// A zygote has only its socket open, and what Node itself opens.
func TestZygoteHoldsNothing(t *testing.T) {
	harness.RequireZygotes(t)
	o := harness.Forking(runtime.Options{Zygote: runtime.ZygoteOptions{Park: -1}}) // no fork is in progress
	harness.Run(t, harness.CreateExact(t, o), ``, runtime.RunOptions{})
	zygotes := harness.Zygotes(t)
	if len(zygotes) == 0 {
		t.Fatal("no zygote is running")
	}
	dir := "/proc/" + strconv.Itoa(zygotes[0])
	sockets := 0
	for _, fd := range harness.Glob(dir + "/fd/*") {
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
	if mounts := harness.Lines(dir + "/mountinfo"); len(mounts) != 1 || !strings.Contains(mounts[0], " / / ro") {
		t.Errorf("mounts: %q", mounts)
	}
}

// Runtimes in different cgroups share zygotes that are in one.
func TestZygotesOfOneGroup(t *testing.T) {
	zygotes := runtime.ZygoteOptions{CgroupParent: harness.Parent}
	var first []int
	for _, name := range []string{"a", "b"} {
		o := harness.Forking(runtime.Options{Zygote: zygotes, CgroupParent: harness.Parent + "/tenants/" + name})
		rt := harness.CreateExact(t, o)
		if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
			t.Errorf("%+v", res)
		}
		now := harness.Zygotes(t)
		if name == "a" {
			first = now
		}
		for _, pid := range now {
			if !slices.Contains(first, pid) && !harness.HasAgent() { // each agent has one
				t.Errorf("%s started a zygote", name)
			}
		}
	}
	relative := runtime.Options{Zygote: runtime.ZygoteOptions{CgroupParent: "a"}}
	if harness.CreateError(t, harness.Forking(relative)) == nil {
		t.Error("a relative path is no cgroup")
	}
}

// Where the kernel can give a zygote huge pages, its C library's heap is copied to some: then all of it
// is resident.
func TestZygoteMovesMemory(t *testing.T) {
	harness.RequireZygotes(t)
	rt := harness.CreateExact(t, harness.Forking(runtime.Options{}))
	harness.Run(t, rt, ``, runtime.RunOptions{})
	dir := "/proc/" + strconv.Itoa(harness.Zygotes(t)[0])
	if harness.ProcNumber(t, dir+"/smaps_rollup", "AnonHugePages:") == 0 {
		t.Skip("this kernel lacks MADV_COLLAPSE, or no huge page was free")
	}
	size, inHeap := "", false
	for _, line := range harness.Lines(dir + "/smaps") {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(line, "-") && strings.HasSuffix(line, "[heap]"):
			inHeap = true
		case inHeap && fields[0] == "Size:":
			size = fields[1]
		case inHeap && fields[0] == "Rss:":
			if inHeap = false; fields[1] != size {
				t.Errorf("%s of %s KiB are resident", fields[1], size)
			}
		}
	}
	if size == "" {
		t.Error("there is no heap")
	}
}
