package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

const (
	soakClients = 4  // of the runtime that is measured, and so many runs at one time
	busyClients = 2  // of the other
	soakParts   = 20 // of a long test: each is measured
	soakLong    = 20000
)

// groupsSeen are the groups of runs and of zygotes, by their names, and by their inodes,
// which no two groups of a hierarchy share.
type groupsSeen struct {
	mu     sync.Mutex
	names  map[string]bool
	inodes map[uint64]bool
}

// look adds the groups that exist now. Only those of the memory hierarchy count, or of
// the only one: they are what the kernel keeps for as long as anything is charged to them.
func (s *groupsSeen) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := fmt.Sprintf("/zygote-%d-*", os.Getpid())
	for _, root := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		for _, dir := range harness.Glob(root+harness.Parent+"/j*/r*", root+harness.Parent+own) {
			var st syscall.Stat_t
			if syscall.Stat(dir, &st) == nil {
				s.names[dir] = true
				s.inodes[st.Ino] = true
			}
		}
	}
}

// Kernel memory does not grow with the number of runs. The kernel keeps the lookup of
// each name of a removed group, and each removed memory group to which anything is
// charged: a page of the image, a file that the run left. So names and memory groups are
// reused, after runs of all kinds, and beside a busy jail.
func TestKernelMemory(t *testing.T) {
	total := harness.Count(t, harness.RunsVar, 240)
	o := harness.Options(runtime.Options{Limits: runtime.Limits{Memory: 96 << 20}})
	long := total >= soakLong
	if long {
		enterGroup(t)
	} else if o.Launcher == runtime.LauncherZygote {
		o.Zygote.Forks = total / 4 // so that zygotes, too, follow each other
	}
	seen := &groupsSeen{names: map[string]bool{}, inodes: map[uint64]bool{}}
	rt := harness.CreateExact(t, o)
	defer keepBusy(t, seen)()
	var series []kernelMemory
	for range soakParts {
		soak(t, rt, seen, total/soakParts)
		if t.Failed() {
			return
		}
		series = append(series, takeKernelMemory(t))
		t.Logf("%d runs: %+v, %d names, %d memory groups", len(series)*(total/soakParts), series[len(series)-1], len(seen.names), len(seen.inodes))
	}
	// A jail has as many memory groups as there are runs at one time, and up to five that
	// are not reused yet, as the kernel frees late what an ended process had. Zygotes take
	// turns with few. This does not depend on the number of runs.
	const mostGroups = soakClients + busyClients + 2*5 + 6
	if n := len(seen.inodes); n > mostGroups && onV1() {
		t.Errorf("%d runs had %d memory groups, want at most %d", total, n, mostGroups)
	}
	if n := len(seen.names); n > mostGroups {
		t.Errorf("%d runs had groups of %d names, want at most %d", total, n, mostGroups)
	}
	if long {
		judgeSeries(t, series)
	}
}

// enterGroup moves this process to a memory group below the tests' own until the test
// ends: the kernel charges it the lookups of names that it makes.
func enterGroup(t *testing.T) {
	t.Helper()
	if !onV1() {
		return
	}
	const root = "/sys/fs/cgroup/memory"
	var before string
	for _, line := range harness.Lines("/proc/self/cgroup") {
		if _, path, ok := strings.Cut(line, ":memory:"); ok {
			before = root + path
		}
	}
	move := func(dir string) error {
		return os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0)
	}
	host := root + harness.Parent + "/host"
	if err := errors.Join(os.MkdirAll(host, 0o755), move(host)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(move(before), os.Remove(host)); err != nil {
			t.Error(err)
		}
	})
}

func onV1() bool {
	_, err := os.Stat("/sys/fs/cgroup/memory")
	return err == nil
}

// keepBusy makes runs in another jail until the function that it returns is called.
func keepBusy(t *testing.T, seen *groupsSeen) (stop func()) {
	t.Helper()
	rt := harness.Create(t, runtime.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range busyClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				if _, err := rt.Run(ctx, `import { execSync } from 'node:child_process'; execSync('ls -l /usr/bin')`, runtime.RunOptions{}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				seen.look()
			}
		})
	}
	return func() {
		cancel()
		clients.Wait()
	}
}

// soak makes n runs.
func soak(t *testing.T, rt *runtime.NodeRuntime, seen *groupsSeen, n int) {
	t.Helper()
	var next atomic.Int64
	var clients sync.WaitGroup
	for range soakClients {
		clients.Go(func() {
			for i := int(next.Add(1)); i <= n && !t.Failed(); i = int(next.Add(1)) {
				soakOnce(t, rt, i)
				seen.look()
			}
		})
	}
	clients.Wait()
}

// soakOnce makes a run: one in four leaves a file, in place of an older one, and the
// first of a part, and a few others, are killed for memory.
func soakOnce(t *testing.T, rt *runtime.NodeRuntime, i int) {
	t.Helper()
	code, cause := `__return(process.argv[2])`, runtime.CauseNone
	switch {
	case i%400 == 1:
		code, cause = `const all = []; for (;;) all.push(Buffer.alloc(4 << 20, 1))`, runtime.CauseMemory
	case i%4 == 0:
		code = `import { writeFileSync } from 'node:fs'; writeFileSync('left-' + process.argv[2] % 20, Buffer.alloc(30000)); __return(process.argv[2])`
	}
	res, err := rt.Run(t.Context(), code, runtime.RunOptions{Args: []string{strconv.Itoa(i)}})
	if err != nil || res.Cause != cause || cause == runtime.CauseNone && string(res.Value) != fmt.Sprintf("%q", strconv.Itoa(i)) {
		t.Errorf("run %d: %+v, %v", i, res, err)
	}
}

// kernelMemory is what the kernel holds. What it has of the whole machine depends on what
// else runs there, and is for the reader of the log: its groups and names are bounded by
// TestKernelMemory.
type kernelMemory struct {
	OwnKiB     int64 // charged to the tests' groups, also removed ones, and this process, on v1
	SlabKiB    int64 // of the whole machine: reclaimable
	DeadGroups int64 // of the whole machine: memory groups that are removed, and still there
}

func takeKernelMemory(t *testing.T) (m kernelMemory) {
	t.Helper()
	m.SlabKiB = harness.ProcNumber(t, "/proc/meminfo", "SReclaimable:")
	if !onV1() {
		m.OwnKiB = harness.ProcNumber(t, "/sys/fs/cgroup"+harness.Parent+"/memory.stat", "kernel") >> 10
		return m
	}
	text := harness.Lines("/sys/fs/cgroup/memory" + harness.Parent + "/memory.kmem.usage_in_bytes")
	bytes, err := strconv.ParseInt(strings.Join(text, ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	m.OwnKiB = bytes >> 10
	m.DeadGroups = harness.ProcNumber(t, "/proc/cgroups", "memory")
	_ = filepath.WalkDir("/sys/fs/cgroup/memory", func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			m.DeadGroups--
		}
		return nil
	})
	return m
}

// judgeSeries compares the median of the last fifth with that of the second: the first
// fills caches. What is in use varies by some 8 MiB. Unless names are reused, 100,000 runs
// add 70.
func judgeSeries(t *testing.T, series []kernelMemory) {
	t.Helper()
	const more = 24 << 10
	fifth := len(series) / 5
	median := func(part []kernelMemory) int64 {
		var all []int64
		for _, m := range part {
			all = append(all, m.OwnKiB)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	if early, late := median(series[fifth:2*fifth]), median(series[len(series)-fifth:]); late > early+more {
		t.Errorf("%d KiB of kernel memory early, %d late", early, late)
	}
}
