package zygote

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// load is what this process, its zygote and the kernel hold.
type load struct {
	hostKiB, zygoteKiB               int64 // resident memory
	goroutines, threads, descriptors int
	runs, groups, processes          int
	kernelKiB, memoryGroups          int64 // of the whole machine
}

func takeLoad(t *testing.T) load {
	t.Helper()
	debug.FreeOSMemory()
	harness.WaitFor(t, "no process waits for a run", func() bool { return harness.LiveRuns() == 0 })
	harness.WaitFor(t, "groups kept for a second are removed", func() bool {
		return len(harness.Glob("/sys/fs/cgroup/pids"+harness.Parent+"/j*/r*")) == 0
	})
	l := load{
		hostKiB: harness.ProcNumber(t, "/proc/self/status", "VmRSS:"), goroutines: goruntime.NumGoroutine(),
		threads: int(harness.ProcNumber(t, "/proc/self/status", "Threads:")), descriptors: harness.OpenDescriptors(),
		runs: harness.LiveRuns(), groups: len(harness.JailCgroups()), processes: len(harness.ProcessesIn(harness.JailCgroups())),
		kernelKiB: harness.ProcNumber(t, "/proc/meminfo", "SUnreclaim:"), memoryGroups: harness.ProcNumber(t, "/proc/cgroups", "memory"),
	}
	for _, pid := range harness.Zygotes(t) {
		l.zygoteKiB = max(l.zygoteKiB, harness.ProcNumber(t, "/proc/"+strconv.Itoa(pid)+"/status", "VmRSS:"))
	}
	return l
}

// gaol holds as much after many runs, two at a time, as after the first tenth of them.
// Meanwhile other runtimes are created and closed.
func TestZygoteManyRuns(t *testing.T) {
	tier.Alone(t)
	total := harness.Count(t, harness.RunsVar, 500)
	part := total / 10
	rt := harness.CreateForking(t, runtime.Options{})
	var loads []load
	var times []time.Duration
	for range 10 {
		times = append(times, runMany(t, rt, part))
		loads = append(loads, takeLoad(t))
	}
	for i, l := range loads {
		t.Logf("%5d runs: %.1f ms each, %+v", (i+1)*part, times[i].Seconds()*1000/float64(part), l)
	}
	first, last := loads[0], loads[len(loads)-1]
	for _, tc := range []struct {
		name              string
		first, last, more int64 // more is the allowed increase
	}{
		{"KiB of the host's memory", first.hostKiB, last.hostKiB, 8 << 10},
		{"KiB of the zygote's memory", first.zygoteKiB, last.zygoteKiB, 4 << 10},
		{"goroutines", int64(first.goroutines), int64(last.goroutines), 0},
		{"threads", int64(first.threads), int64(last.threads), 8},
		{"descriptors", int64(first.descriptors), int64(last.descriptors), 0},
		{"groups", int64(first.groups), int64(last.groups), 5}, // memory groups that [cgroup.Pool] keeps while memory is charged to them
		{"groups of runs", 0, int64(last.runs), 0},
		{"processes in jails", int64(first.processes), int64(last.processes), 0},
	} {
		if tc.last > tc.first+tc.more {
			t.Errorf("%s: %d after %d runs, %d after %d", tc.name, tc.first, part, tc.last, total)
		}
	}
	harness.CheckNoRuns(t)
}

// runMany makes n runs, two at a time, and meanwhile some in runtimes that are created for
// one run.
func runMany(t *testing.T, rt *runtime.NodeRuntime, n int) time.Duration {
	t.Helper()
	began := time.Now()
	var both sync.WaitGroup
	for half := range 2 {
		both.Go(func() {
			for i := range n / 2 {
				res, err := rt.Run(t.Context(), `__return(process.argv[2]); console.log('x')`, runtime.RunOptions{Args: []string{strconv.Itoa(i)}})
				if err != nil || string(res.Value) != fmt.Sprintf("%q", strconv.Itoa(i)) {
					t.Errorf("run %d: %+v, %v", i, res, err)
					return
				}
				if half == 0 && i%100 == 0 {
					createRunClose(t)
				}
			}
		})
	}
	both.Wait()
	return time.Since(began)
}

func createRunClose(t *testing.T) {
	o := harness.Forking(runtime.Options{})
	rt, err := runtime.Create(t.Context(), o)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := rt.Run(t.Context(), ``, runtime.RunOptions{}); err != nil {
		t.Error(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}
