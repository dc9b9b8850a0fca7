package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// counting are programs that count in the file /tmp/count, with a child process.
const counting = `import { spawn } from 'node:child_process'; import { writeFileSync } from 'node:fs';
	spawn('sh', ['-c', 'while :; do echo >> /tmp/lines; done']);
	for (let n = 0; ; n++) writeFileSync('/tmp/count', String(n));`

// newPausable creates a runtime that can be paused.
func newPausable(t *testing.T, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	if !harness.Needs(t, runtime.FeaturePause) {
		t.Skip("the isolation refuses it")
	}
	return harness.Create(t, o)
}

// start starts code, and returns a function that waits for its end.
func start(ctx context.Context, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) (wait func() (*runtime.Result, error)) {
	var res *runtime.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err = rt.Run(ctx, code, o)
	}()
	return func() (*runtime.Result, error) {
		<-done
		return res, err
	}
}

// counts returns the output of the counting programs.
func counts(rt *runtime.NodeRuntime) string {
	count, err := rt.FS().ReadFile("/tmp/count")
	info, failed := rt.FS().Stat("/tmp/lines")
	if errors.Join(err, failed) != nil {
		return ""
	}
	return fmt.Sprintf("%s %d", count, info.Size())
}

// awaitCount waits until the programs have counted on.
func awaitCount(t *testing.T, rt *runtime.NodeRuntime) {
	t.Helper()
	before := strings.Fields(counts(rt))
	harness.WaitFor(t, "count", func() bool {
		now := strings.Fields(counts(rt))
		return len(now) == 2 && (len(before) < 2 || now[0] != before[0] && now[1] != before[1])
	})
}

// pause pauses a runtime, twice.
func pause(t *testing.T, rt *runtime.NodeRuntime) {
	t.Helper()
	if err := errors.Join(rt.Pause(t.Context()), rt.Pause(t.Context())); err != nil || !rt.Paused() {
		t.Fatal(err, rt.Paused())
	}
}

// resume resumes a runtime, twice.
func resume(t *testing.T, rt *runtime.NodeRuntime) {
	t.Helper()
	if err := errors.Join(rt.Resume(t.Context()), rt.Resume(t.Context())); err != nil || rt.Paused() {
		t.Fatal(err, rt.Paused())
	}
}

// Programs of a paused runtime do not count on, and nothing starts; its files can be used. Then they continue.
func TestPause(t *testing.T) {
	for _, launcher := range harness.Launchers {
		t.Run(launcher.String(), func(t *testing.T) {
			rt := newPausable(t, runtime.Options{Launcher: launcher})
			resume(t, rt)
			ctx, cancel := context.WithCancel(t.Context())
			wait := start(ctx, rt, counting, runtime.RunOptions{Timeout: -1})
			for range 3 {
				awaitCount(t, rt)
				pause(t, rt)
				before := counts(rt)
				if err := rt.FS().WriteFile("/tmp/other", []byte("1"), hostfs.WriteOptions{}); err != nil {
					t.Error(err)
				}
				time.Sleep(50 * time.Millisecond)
				if now := counts(rt); now != before {
					t.Errorf("it counted from %s to %s", before, now)
				}
				resume(t, rt)
			}
			awaitCount(t, rt)
			if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
				t.Errorf("%+v", res)
			}
			cancel()
			if res, err := wait(); res == nil || res.Cause != runtime.CauseCanceled || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// Nothing starts in a paused runtime.
func TestPausedRefusesStarts(t *testing.T) {
	rt := newPausable(t, runtime.Options{})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pause(t, rt)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, call := range map[string]func() error{
		"Run":        func() error { _, err := rt.Run(ctx, `1`, runtime.RunOptions{}); return err },
		"Exec":       func() error { _, err := rt.Exec(ctx, `1`, runtime.RunOptions{}); return err },
		"Command":    func() error { _, err := rt.Command(ctx, "true", nil, runtime.RunOptions{}); return err },
		"Evaluate":   func() error { _, err := rt.Evaluate(ctx, `1`, runtime.EvaluateOptions{}); return err },
		"NewContext": func() error { _, err := rt.NewContext(ctx, runtime.ContextOptions{}); return err },
		"cell":       func() error { _, err := c.Evaluate(ctx, `1`, runtime.EvaluateOptions{}); return err },
		"Complete":   func() error { _, _, err := c.Complete(ctx, `a`); return err },
		"Spawn":      func() error { _, err := rt.Spawn(ctx, "true", nil, runtime.SpawnOptions{}); return err },
		"SpawnCode":  func() error { _, err := rt.SpawnCode(ctx, `1`, runtime.SpawnOptions{}); return err },
		"terminal": func() error {
			_, err := rt.Spawn(ctx, "true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{}})
			return err
		},
		"Warm": func() error { return rt.Warm(ctx) },
	} {
		if err := call(); !errors.Is(err, runtime.ErrPaused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	resume(t, rt)
	e, err := c.Evaluate(ctx, `1`, runtime.EvaluateOptions{})
	if err != nil || string(e.Value) != "1" {
		t.Errorf("a cell after the pause: %+v, %v", e, err)
	}
}

// A pause does not count against the time limit of a run, which ends it after the pause.
func TestPauseStopsTime(t *testing.T) {
	rt := newPausable(t, runtime.Options{})
	const limit = 3 * time.Second
	wait := start(t.Context(), rt, counting, runtime.RunOptions{Timeout: limit})
	awaitCount(t, rt)
	pause(t, rt)
	time.Sleep(limit + limit/10)
	if runs := len(rt.Processes()); runs != 1 {
		t.Errorf("%d runs", runs)
	}
	resume(t, rt)
	if res, err := wait(); err != nil || res.Cause != runtime.CauseTimeout {
		t.Errorf("%+v, %v", res, err)
	}
}

// Whatever ends a run or a context also ends it while its runtime is paused, and leaves the others.
func TestPausedRunsEnd(t *testing.T) {
	rt := newPausable(t, runtime.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	wait := start(ctx, rt, counting, runtime.RunOptions{})
	awaitCount(t, rt)
	killed := start(t.Context(), rt, `for (;;);`, runtime.RunOptions{Timeout: -1})
	harness.WaitFor(t, "second run", func() bool { return len(rt.Processes()) == 2 })
	second := rt.Processes()[1].PID
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan string, 1)
	cell, cancelCell := context.WithCancel(t.Context())
	cellEnded := make(chan error, 1)
	go func() {
		_, err := c.Evaluate(cell, `console.log('cell'); for (;;);`, runtime.EvaluateOptions{OnLog: func(l runtime.Log) { started <- l.Text }})
		cellEnded <- err
	}()
	<-started
	pause(t, rt)
	if err := rt.Kill(second); err != nil {
		t.Error(err)
	}
	if res, err := killed(); err != nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("killed: %+v, %v", res, err)
	}
	cancelCell()
	if err := <-cellEnded; !errors.Is(err, context.Canceled) {
		t.Errorf("the cell: %v", err)
	}
	<-c.Done()
	before := counts(rt)
	if len(rt.Processes()) != 1 || before == "" {
		t.Errorf("%d processes are left; counts %q", len(rt.Processes()), before)
	}
	cancel()
	if res, err := wait(); res == nil || res.Cause != runtime.CauseCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %+v, %v", res, err)
	}
	if now := counts(rt); now != before {
		t.Errorf("it counted from %s to %s", before, now)
	}
	resume(t, rt)
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
}

// A closed runtime leaves nothing although it was paused, with a run or with a process that waits for its program.
func TestPausedCloses(t *testing.T) {
	before := harness.TakeInventory()
	rt := newPausable(t, runtime.Options{})
	wait := start(t.Context(), rt, counting, runtime.RunOptions{Timeout: -1})
	awaitCount(t, rt)
	pause(t, rt)
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if res, err := wait(); res == nil || !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("%+v, %v", res, err)
	}
	if err := rt.Pause(t.Context()); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("pause of a closed runtime: %v", err)
	}
	if harness.Needs(t, runtime.FeaturePark) {
		parked := harness.CreateParked(t, runtime.Options{})
		pause(t, parked)
		resume(t, parked)
		if res := harness.Run(t, parked, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
			t.Errorf("%+v", res)
		}
		pause(t, parked)
		if err := errors.Join(parked.Close(), runtime.CloseIdle()); err != nil {
			t.Error(err)
		}
	}
	before.CheckLeaks(t)
}

// A pause that its context ends while a run starts does nothing.
func TestPauseIsCanceled(t *testing.T) {
	rt := newPausable(t, runtime.Options{})
	wait := start(t.Context(), rt, counting, runtime.RunOptions{Timeout: -1})
	awaitCount(t, rt)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rt.Pause(ctx); !errors.Is(err, context.Canceled) || rt.Paused() {
		t.Errorf("%v, paused %v", err, rt.Paused())
	}
	for i := range 20 { // at any moment
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		if err := rt.Pause(ctx); err != nil && rt.Paused() {
			t.Errorf("paused after %v", err)
		}
		cancel()
		resume(t, rt)
	}
	awaitCount(t, rt)
	rt.Close()
	_, _ = wait()
}

// Pauses at any moment of runs let each of them succeed, or refuse it.
func TestPauseDuringRuns(t *testing.T) {
	rt := newPausable(t, runtime.Options{})
	var refused atomic.Int64
	var runs sync.WaitGroup
	for range 3 {
		runs.Go(func() {
			for succeeded := 0; succeeded < 10 && !t.Failed(); {
				res, err := rt.Run(t.Context(), `__return(1)`, runtime.RunOptions{})
				switch {
				case errors.Is(err, runtime.ErrPaused):
					refused.Add(1)
				case err != nil || string(res.Value) != "1":
					t.Errorf("%+v, %v", res, err)
				default:
					succeeded++
				}
			}
		})
	}
	stop := make(chan struct{})
	go func() { defer close(stop); runs.Wait() }()
	for ended := false; !ended; {
		pause(t, rt)
		time.Sleep(time.Millisecond)
		resume(t, rt)
		select {
		case <-stop:
			ended = true
		case <-time.After(20 * time.Millisecond): // in which runs start
		}
	}
	t.Logf("%d runs were refused", refused.Load())
}

// The next host removes the processes of a host that was killed while its runtime was paused.
func TestPausedHostIsKilled(t *testing.T) {
	if !harness.Needs(t, runtime.FeaturePause) {
		return
	}
	state, parent := t.TempDir(), harness.Parent+"-paused"
	t.Cleanup(func() {
		if err := cgroup.Remove(context.Background(), parent); err != nil {
			t.Error(err)
		}
	})
	program := func(mode string) *exec.Cmd {
		cmd := hostProgram(t, mode)
		cmd.Env = append(cmd.Env, harness.ParentVar+"="+parent, stateVar+"="+state, victimVar+"=last")
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Unshareflags: unix.CLONE_NEWNS}
		return cmd
	}
	host := program("paused")
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Error(err)
	}
	_ = host.Process.Kill()
	_ = host.Wait()
	if text, err := program("victim").Output(); err != nil || string(text) != "up\nround\n" {
		t.Errorf("the next host: %s, %v", text, err)
	}
	harness.WaitFor(t, "end of the processes", func() bool {
		return len(harness.Glob("/proc/"+strconv.Itoa(pid)+"/exe", state+"/jails/*", "/sys/fs/cgroup/*"+parent+"/*/cgroup.procs", "/sys/fs/cgroup"+parent+"/*/cgroup.procs")) == 0
	})
}

// runPausedHost prints the pid of a process of a paused runtime, and waits.
func runPausedHost() {
	err := mountState()
	var rt *runtime.NodeRuntime
	if err == nil {
		rt, err = runtime.Create(context.Background(), harness.Options(runtime.Options{}))
	}
	if err == nil {
		start(context.Background(), rt, counting, runtime.RunOptions{Timeout: -1})
		for counts(rt) == "" {
			time.Sleep(time.Millisecond)
		}
		err = rt.Pause(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pids := harness.JailProcesses()
	fmt.Println(pids[len(pids)-1])
	select {}
}
