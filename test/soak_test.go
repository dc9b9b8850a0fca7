package test

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
)

// load is what this process, its zygote and the kernel hold for it.
type load struct {
	hostKiB, zygoteKiB               int64 // resident memory
	goroutines, threads, descriptors int
	runs, groups, processes          int
	kernelKiB, memoryGroups          int64 // of the whole machine
}

func takeLoad(t *testing.T) load {
	t.Helper()
	debug.FreeOSMemory()
	l := load{
		hostKiB: number(t, "/proc/self/status", "VmRSS:"), goroutines: goruntime.NumGoroutine(),
		threads: int(number(t, "/proc/self/status", "Threads:")), descriptors: openDescriptors(),
		runs: liveRuns(), groups: len(jailGroups()), processes: len(processesIn(jailGroups())),
		kernelKiB: number(t, "/proc/meminfo", "SUnreclaim:"), memoryGroups: number(t, "/proc/cgroups", "memory"),
	}
	for _, pid := range myZygotes(t) {
		l.zygoteKiB = max(l.zygoteKiB, number(t, "/proc/"+strconv.Itoa(pid)+"/status", "VmRSS:"))
	}
	return l
}

// number reads the number behind a name in a file of /proc, or the one behind that.
func number(t *testing.T, path, name string) int64 {
	t.Helper()
	for _, line := range lines(path) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if name == "memory" { // name, hierarchy, number of groups
			n, err = strconv.ParseInt(fields[2], 10, 64)
		}
		if err == nil {
			return n
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}

// After ten thousand runs in a row, two at a time, and a hundred runtimes that came
// and went meanwhile, gaol holds what it held after the first thousand.
func TestZygoteTenThousandRuns(t *testing.T) {
	const total, part = 10000, 1000
	rt := createForking(t, runtime.Options{})
	var loads []load
	var times []time.Duration
	for range total / part {
		times = append(times, runMany(t, rt, part))
		loads = append(loads, takeLoad(t))
	}
	for i, l := range loads {
		t.Logf("%5d runs: %.1f ms each, %+v", (i+1)*part, times[i].Seconds()*1000/part, l)
	}
	first, last := loads[0], loads[len(loads)-1]
	for _, tc := range []struct {
		name              string
		first, last, more int64 // more is how much more may be
	}{
		{"KiB of the host's memory", first.hostKiB, last.hostKiB, 8 << 10},
		{"KiB of the zygote's memory", first.zygoteKiB, last.zygoteKiB, 4 << 10},
		{"goroutines", int64(first.goroutines), int64(last.goroutines), 0},
		{"threads", int64(first.threads), int64(last.threads), 8},
		{"descriptors", int64(first.descriptors), int64(last.descriptors), 0},
		{"groups", int64(first.groups), int64(last.groups), 0},
		{"groups of runs", 0, int64(last.runs), 0},
		{"processes in jails", int64(first.processes), int64(last.processes), 0},
	} {
		if tc.last > tc.first+tc.more {
			t.Errorf("%s: %d after %d runs, %d after %d", tc.name, tc.first, part, tc.last, total)
		}
	}
	nothingLeft(t)
}

// runMany performs n runs, two at a time, and in between those of runtimes that are
// there for one run.
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
					comeAndGo(t)
				}
			}
		})
	}
	both.Wait()
	return time.Since(began)
}

func comeAndGo(t *testing.T) {
	o := ours(runtime.Options{})
	o.Launcher = runtime.LauncherZygote
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
