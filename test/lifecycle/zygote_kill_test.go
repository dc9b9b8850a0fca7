package lifecycle

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// While a hundred runs are in progress, zygotes are killed repeatedly. No run hangs: each
// returns its own value, or an error that says what happened. Runs that have started are
// not affected.
func TestZygoteKilledInFlight(t *testing.T) {
	if harness.InGVisor() {
		t.Skip("the host does not see zygotes in gVisor")
	}
	if !harness.Needs(t, runtime.FeatureZygote) {
		return
	}
	rt, other := harness.CreateForking(t, runtime.Options{MaxConcurrentRuns: 100}), harness.CreateForking(t, runtime.Options{})
	goesOn := harness.StartNode(t, other)
	harness.Run(t, rt, ``, runtime.RunOptions{})
	killed := 0
	completed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for killed < 5 {
			for _, pid := range harness.Zygotes(t) {
				if unix.Kill(pid, unix.SIGKILL) == nil {
					killed++
				}
			}
			select {
			case <-completed:
				return
			case <-time.After(150 * time.Millisecond):
			}
		}
	}()
	results := make(chan error)
	began := time.Now()
	const total = 100
	for i := range total {
		go func() {
			res, err := rt.Run(t.Context(), `__return(process.argv[2])`, runtime.RunOptions{Args: []string{strconv.Itoa(i)}})
			if err == nil && (string(res.Value) != strconv.Quote(strconv.Itoa(i)) || res.Cause != "") {
				t.Errorf("run %d: %+v", i, res)
			}
			results <- err
		}()
	}
	failed := 0
	for range total {
		if err := <-results; err != nil {
			failed++
			if !strings.Contains(err.Error(), "zygote") {
				t.Errorf("no clear error: %v", err)
			}
		}
	}
	close(completed)
	<-ended
	t.Logf("%d zygotes killed, %d of %d runs failed, %v", killed, failed, total, time.Since(began))
	if killed < 2 {
		t.Errorf("%d zygotes were killed: this test proves nothing", killed)
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("the next run: %+v", res)
	}
	if err := unix.Kill(goesOn, 0); err != nil {
		t.Errorf("a run that was up already: %v", err)
	}
}

// runStormHost creates runtimes and runs until it is killed. At any moment some runs are
// starting, running, queued or ending.
func runStormHost() {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			rt, err := runtime.Create(context.Background(), harness.Options(runtime.Options{MaxConcurrentRuns: 8}))
			for i := 0; err == nil; i++ {
				if i < 10 {
					go rt.Run(context.Background(), `setInterval(() => {}, 1000)`, runtime.RunOptions{Timeout: time.Duration(100*i+1) * time.Millisecond})
				}
				_, err = rt.Run(context.Background(), `__return(1)`, runtime.RunOptions{})
			}
			fmt.Println(err)
		})
	}
	all.Wait()
}

// A host is killed while zygotes start, fork and end. They and all runs die with it, and
// the next host removes the rest.
func TestZygoteHostIsKilled(t *testing.T) {
	tier.Soak(t)
	if !harness.Needs(t, runtime.FeatureZygote) {
		return
	}
	before := harness.TakeInventory()
	leftGroups := false
	for age := 100; age <= 1200 || !leftGroups && age < 60_000; age += max(200, age/4) { // milliseconds; a zygote is ready after some 400
		host := hostProgram(t, "storm")
		host.Env = append(host.Env, harness.LauncherVar+"=zygote")
		host.Stdout = os.Stderr
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(age) * time.Millisecond)
		children := childrenOf(host.Process.Pid)
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = host.Wait()
		waitGone(t, age, children, before)
		leftGroups = leftGroups || len(harness.Glob("/sys/fs/cgroup/*"+harness.Parent+"/zygote-"+strconv.Itoa(host.Process.Pid)+"-*", "/sys/fs/cgroup"+harness.Parent+"/zygote-"+strconv.Itoa(host.Process.Pid)+"-*")) > 0
	}
	if !leftGroups {
		t.Error("no killed host left the group of a zygote: this test proves nothing of them")
	}
	next := hostProgram(t, "", "-test.run=^TestNextHost$")
	next.Env = append(next.Env, harness.LauncherVar+"=zygote")
	if text, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	before.CheckLeaks(t)
}

// waitGone waits until a killed host's children and all processes in its jails are gone.
func waitGone(t *testing.T, age int, children []int, before harness.Inventory) {
	t.Helper()
	alive := func() bool {
		running := slices.DeleteFunc(harness.TakeInventory().Processes, func(pid string) bool { return slices.Contains(before.Processes, pid) })
		return slices.ContainsFunc(children, lives) || len(running) > 0
	}
	deadline := time.Now().Add(time.Minute)
	for alive() {
		if time.Now().After(deadline) {
			t.Fatalf("killed after %v ms: of %v and %v some are still there", age, children, harness.TakeInventory().Processes)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lives reports whether a process runs. An exiting process may stay until init reaps it,
// and does not count.
func lives(pid int) bool {
	p, ok := readProcess("/proc/" + strconv.Itoa(pid) + "/stat")
	return ok && p.state != "Z" && !p.exiting
}

func childrenOf(parent int) (children []int) {
	for _, path := range harness.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children") {
		for _, field := range strings.Fields(strings.Join(harness.Lines(path), " ")) {
			if pid, err := strconv.Atoi(field); err == nil {
				children = append(children, pid)
			}
		}
	}
	return children
}
