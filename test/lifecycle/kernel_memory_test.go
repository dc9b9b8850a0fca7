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
	"gaol/test/tier"
)

const (
	soakClients = 4  // concurrent runs of the measured runtime
	busyClients = 2  // concurrent runs of the other runtime
	soakParts   = 20 // measurements during a long test
	soakLong    = 20000
)

// cgroupsSeen are the cgroups of runs and zygotes, by name and by inode. No two cgroups of
// a hierarchy have the same inode.
type cgroupsSeen struct {
	mu     sync.Mutex
	names  map[string]bool
	inodes map[uint64]bool
}

// look adds the cgroups that exist now. Only those of the memory hierarchy count, or of the
// unified one: the kernel keeps these for as long as anything is charged to them.
func (s *cgroupsSeen) look() {
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

// Kernel memory does not grow with the number of runs. The kernel keeps the lookup of each
// name of a removed cgroup, and each removed memory cgroup to which anything is charged,
// such as a page of the image or a file that the run left. So names and memory cgroups are
// reused, after runs of all kinds, and beside a busy jail.
func TestKernelMemory(t *testing.T) {
	tier.Alone(t)
	total := harness.Count(t, harness.RunsVar, 240)
	o := harness.Options(runtime.Options{Limits: runtime.Limits{Memory: 96 << 20}})
	long := total >= soakLong
	if long {
		enterGroup(t)
	} else if o.Launcher == runtime.LauncherZygote && harness.Needs(t, runtime.FeatureZygote) {
		o.Zygote.Forks = total / 4 // so that zygotes are replaced, too
	}
	seen := &cgroupsSeen{names: map[string]bool{}, inodes: map[uint64]bool{}}
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
	// A jail has as many memory cgroups as concurrent runs, and up to five that are not
	// reused yet, because the kernel frees the memory of an ended process late. Zygotes
	// reuse few. This does not depend on the number of runs.
	const mostGroups = soakClients + busyClients + 2*5 + 6
	if n := len(seen.inodes); n > mostGroups && onV1() {
		t.Errorf("%d runs had %d memory groups, want at most %d", total, n, mostGroups)
	}
	if n := len(seen.names); n > mostGroups {
		t.Errorf("%d runs had groups of %d names, want at most %d", total, n, mostGroups)
	}
	if long {
		checkSeries(t, series)
	}
}

// enterGroup moves this process to a memory cgroup below the tests' parent until the test
// ends. The kernel charges that cgroup for the lookups of names that this process makes.
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

// keepBusy makes runs in another jail until stop is called.
func keepBusy(t *testing.T, seen *cgroupsSeen) (stop func()) {
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
func soak(t *testing.T, rt *runtime.NodeRuntime, seen *cgroupsSeen, n int) {
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

// soakOnce makes a run. One in four leaves a file, replacing an older one. The first of
// each part, and a few others, are killed for memory.
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

// kernelMemory is the kernel's memory. Figures of the whole machine depend on what else
// runs there, and are only logged: TestKernelMemory checks the cgroups and names.
type kernelMemory struct {
	OwnKiB     int64 // charged to the tests' cgroups, also removed ones, and on v1 to this process
	SlabKiB    int64 // of the whole machine: reclaimable
	DeadGroups int64 // of the whole machine: removed memory cgroups that the kernel keeps
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

// checkSeries compares the median of the last fifth with that of the second, because the
// first fills caches. The use varies by some 8 MiB. If names were not reused, 100,000 runs
// would add 70.
func checkSeries(t *testing.T, series []kernelMemory) {
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
