package zygote

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// forking are the options of a runtime whose zygote no other test has used.
func forking(t *testing.T, z runtime.ZygoteOptions) runtime.Options {
	t.Helper()
	if err := runtime.CloseIdle(); err != nil {
		t.Fatal(err)
	}
	z.Park = -1 // forks are counted
	return harness.Forking(runtime.Options{Zygote: z})
}

// Zygotes are replaced while runs are forked from them, without an effect on the runs. They
// reuse few cgroups, because a removed one may stay in the kernel.
func TestZygotesRetire(t *testing.T) {
	tier.Soak(t)
	const users, forks = 4, 20
	runs := harness.Fewer(200, 100)
	o := forking(t, runtime.ZygoteOptions{Forks: forks})
	pool := harness.NewPool(t, o, runtime.PoolOptions{Parallel: 2})
	var mu sync.Mutex
	seen, groups := map[int]bool{}, map[string]bool{}
	deadline := time.Now().Add(time.Minute)
	continues := func(i int) bool { // also until a zygote is replaced twice, which takes long on a busy machine
		mu.Lock()
		defer mu.Unlock()
		return i < runs/users || len(seen) < 3 && time.Now().Before(deadline)
	}
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for i := 0; continues(i); i++ {
				if res := harness.RunFromPool(t, pool, `__return(1)`); string(res.Value) != "1" {
					t.Errorf("%+v", res)
				}
				mu.Lock()
				for _, pid := range harness.Zygotes(t) {
					seen[pid] = true
				}
				for _, dir := range harness.ZygoteCgroups() {
					groups[filepath.Base(dir)] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d zygotes in %d groups", len(seen), len(groups))
	const most = 3 // the serving one, its successor, and an ending one
	if len(groups) > most {
		t.Errorf("%d zygotes had %d groups, want at most %d", len(seen), len(groups), most)
	}
	if len(seen) < 3 { // the last one may not have forked a run yet
		t.Errorf("there were %d zygotes", len(seen))
	}
	harness.WaitFor(t, "all zygotes but one are gone", func() bool { return len(harness.Zygotes(t)) == 1 })
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if err := runtime.CloseIdle(); err != nil {
		t.Error(err)
	}
	if groups := harness.ZygoteCgroups(); len(groups) > 0 {
		t.Errorf("left behind: %v", groups)
	}
}

// theZygote returns the one zygote that serves a runtime.
func theZygote(t *testing.T, rt *runtime.NodeRuntime) int {
	t.Helper()
	harness.Run(t, rt, ``, runtime.RunOptions{})
	zygotes := harness.Zygotes(t)
	if len(zygotes) != 1 {
		t.Fatalf("zygotes: %v", zygotes)
	}
	return zygotes[0]
}

func signalProcess(t *testing.T, pid int, s unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, s); err != nil {
		t.Error(err)
	}
}

// runAtOnce starts n runs of a program that must return 1.
func runAtOnce(t *testing.T, rt *runtime.NodeRuntime, n int, code string, o runtime.RunOptions) (wait func()) {
	t.Helper()
	var runs sync.WaitGroup
	for range n {
		runs.Go(func() {
			res, err := rt.Run(t.Context(), code, o)
			if err != nil || string(res.Value) != "1" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	return runs.Wait
}

// A zygote that hangs delays the runs that it should start, but does not fail them.
func TestZygoteHangs(t *testing.T) {
	harness.RequireZygotes(t)
	const patience = 500 * time.Millisecond
	rt := harness.CreateExact(t, forking(t, runtime.ZygoteOptions{Patience: patience}))
	hung := theZygote(t, rt)
	signalProcess(t, hung, unix.SIGSTOP)
	began := time.Now()
	runAtOnce(t, rt, 8, `__return(1)`, runtime.RunOptions{})()
	took := time.Since(began)
	t.Logf("8 runs took %v", took)
	if took < patience || took > patience+25*time.Second { // less than the runs' timeout
		t.Errorf("8 runs took %v", took)
	}
	if slices.Contains(harness.Zygotes(t), hung) {
		t.Error("it is still there")
	}
}

// A zygote that is killed while idle is replaced for the next run.
func TestZygoteIsKilledWhileIdle(t *testing.T) {
	harness.RequireZygotes(t)
	rt := harness.CreateExact(t, forking(t, runtime.ZygoteOptions{}))
	for range 3 {
		killed := theZygote(t, rt)
		signalProcess(t, killed, unix.SIGKILL)
		runAtOnce(t, rt, 1, `__return(1)`, runtime.RunOptions{})()
		if now := harness.Zygotes(t); len(now) != 1 || now[0] == killed {
			t.Errorf("zygotes %v after %d was killed", now, killed)
		}
	}
	names := map[string]bool{} // the same names in each hierarchy
	for _, group := range harness.ZygoteCgroups() {
		names[filepath.Base(group)] = true
	}
	if len(names) != 1 {
		t.Errorf("groups of zygotes: %v", harness.ZygoteCgroups())
	}
}

// Runs do not depend on the zygote that started them.
func TestZygoteIsKilledDuringRuns(t *testing.T) {
	harness.RequireZygotes(t)
	rt := harness.CreateExact(t, forking(t, runtime.ZygoteOptions{}))
	zygote := theZygote(t, rt)
	var up atomic.Int32
	old := runAtOnce(t, rt, 6, `console.log('up'); await new Promise((r) => setTimeout(r, 500)); __return(1)`,
		runtime.RunOptions{OnStdout: func([]byte) { up.Add(1) }})
	harness.WaitFor(t, "six runs are up", func() bool { return up.Load() == 6 })
	signalProcess(t, zygote, unix.SIGKILL)
	runAtOnce(t, rt, 6, `__return(1)`, runtime.RunOptions{})()
	old()
}

// zombies lists this process's children that ended and were not reaped.
func zombies() []string {
	var found []string
	for _, dir := range harness.Glob("/proc/[0-9]*") {
		status := harness.ProcessStatus(filepath.Base(dir))
		if status["PPid"] == strconv.Itoa(os.Getpid()) && status["State"] == "Z (zombie)" {
			found = append(found, filepath.Base(dir)+" "+status["Name"])
		}
	}
	return found
}

// churn creates and closes runtimes with four runs each until stop is closed. It counts the
// runs, and returns how long the slowest Close took.
func churn(t *testing.T, o runtime.Options, stop <-chan struct{}, runs *atomic.Int32) (slowest time.Duration) {
	for {
		select {
		case <-stop:
			return slowest
		default:
		}
		rt, err := runtime.Create(t.Context(), o)
		if err != nil {
			t.Error(err)
			return slowest
		}
		for range 4 {
			if _, err := rt.Run(t.Context(), ``, runtime.RunOptions{}); err != nil {
				t.Error(err)
			}
			runs.Add(1)
		}
		began := time.Now()
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		slowest = max(slowest, time.Since(began))
	}
}

// A zygote may die at any moment, also between a fork and its report. The host reaps the
// child that was not reported, because its jail could not be closed otherwise.
func TestZygoteDiesAtAnyMoment(t *testing.T) {
	tier.Alone(t)
	harness.RequireZygotes(t)
	const users = 8
	kills := harness.Count(t, harness.KillsVar, 15)
	o := forking(t, runtime.ZygoteOptions{})
	stop := make(chan struct{})
	var runs atomic.Int32
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			if slowest := churn(t, o, stop, &runs); slowest > 10*time.Second {
				t.Errorf("a Close took %v", slowest)
			}
		})
	}
	rt := harness.CreateExact(t, o)
	for range kills {
		harness.Run(t, rt, ``, runtime.RunOptions{})                    // ensures that a zygote exists
		time.Sleep(time.Duration(rand.IntN(50_000)) * time.Microsecond) // a run tries three zygotes
		for _, pid := range harness.Zygotes(t) {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have been replaced
		}
		for enough := runs.Load() + users; runs.Load() < enough && !t.Failed(); { // otherwise three may die during one slow run
			time.Sleep(time.Millisecond)
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%d runs saw %d zygotes die", runs.Load(), kills)
	if err := errors.Join(rt.Close(), runtime.CloseIdle()); err != nil {
		t.Error(err)
	}
	if left := zombies(); len(left) > 0 {
		t.Errorf("zombies: %v", left)
	}
}

// When Warm returns, the runtime's zygote is ready. Programs, evaluations and contexts
// share it.
func TestWarm(t *testing.T) {
	harness.RequireZygotes(t)
	rt := harness.CreateExact(t, forking(t, runtime.ZygoteOptions{}))
	if err := rt.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	zygotes := harness.Zygotes(t)
	if len(zygotes) != 1 {
		t.Fatalf("zygotes: %v", zygotes)
	}
	harness.Run(t, rt, ``, runtime.RunOptions{})
	harness.Evaluate(t, rt, `1`, runtime.EvaluateOptions{})
	if got := harness.Zygotes(t); !slices.Equal(got, zygotes) {
		t.Errorf("zygotes: %v, was %v", got, zygotes)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := harness.CreateExact(t, forking(t, runtime.ZygoteOptions{Forks: 7})).Warm(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %v", err)
	}
	o := harness.Options(runtime.Options{})
	o.Launcher = runtime.LauncherExec
	if err := harness.CreateExact(t, o).Warm(t.Context()); err != nil {
		t.Errorf("without zygotes: %v", err)
	}
}
