package zygote

import (
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// runPID runs a program that returns its pid. The pids of a sandbox are in the order in which its
// processes were forked.
func runPID(t *testing.T, rt *runtime.NodeRuntime) (pid int) {
	t.Helper()
	if err := harness.Run(t, rt, `__return(process.pid)`, runtime.RunOptions{}).Decode(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitForNext makes runs until the process of the next one waits: it is forked only while a
// processor is idle. It returns the pid of the last run, and whether one waits. On a busy machine none
// does: package native tests when one is forked.
func waitForNext(t *testing.T, rt *runtime.NodeRuntime) (pid int, waits bool) {
	t.Helper()
	for range 20 {
		pid = runPID(t, rt)
		for range 20 {
			if waiting() {
				return pid, true
			}
			time.Sleep(time.Millisecond)
		}
	}
	t.Log("the machine is busy: no process waits for the next run")
	return pid, false
}

// waiting reports whether a process waits: it is the only one, beside pid 1.
func waiting() bool {
	return len(harness.JailProcesses()) == 2
}

func createParking(t *testing.T, wait time.Duration) *runtime.NodeRuntime {
	t.Helper()
	o := harness.Options(runtime.Options{Zygote: runtime.ZygoteOptions{Park: wait}})
	o.Launcher = runtime.LauncherZygote
	rt := harness.CreateExact(t, o)
	if err := rt.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rt
}

// The process that waits becomes that of the next run, which shares nothing with earlier ones.
func TestZygoteNext(t *testing.T) {
	rt := createParking(t, time.Minute)
	before, waits := runPID(t, rt), false
	if harness.InGVisor() { // the host sees neither processes nor sockets
		time.Sleep(100 * time.Millisecond)
	} else {
		before, waits = waitForNext(t, rt)
		if r, err := rt.Resources(t.Context()); err != nil || r.Processes != 0 {
			t.Errorf("resources of a runtime without a run: %+v, %v", r, err)
		}
	}
	const program = `
		const seen = [globalThis.left, process.env.LEFT, process.argv.length, process.exitCode]
		globalThis.left = 1; process.env.LEFT = '1'; process.argv.push('x')
		__return({ pid: process.pid, seen, random: Math.random(), uptime: process.uptime() })`
	var first, second struct {
		PID            int
		Seen           []any
		Random, Uptime float64
	}
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	if err := harness.Run(t, rt, program, runtime.RunOptions{}).Decode(&first); err != nil {
		t.Fatal(err)
	}
	if waits && first.PID != before+1 || first.Uptime > time.Since(begun).Seconds() {
		t.Errorf("after pid %d: %+v: it is not the process that waited, or its time counts from the fork", before, first)
	}
	if err := harness.Run(t, rt, program, runtime.RunOptions{}).Decode(&second); err != nil {
		t.Fatal(err)
	}
	if second.Seen[0] != nil || second.Seen[1] != nil || second.Seen[2] != 2.0 || second.Random == first.Random {
		t.Errorf("%+v, then %+v", first, second)
	}
}

// A process that waits ends before another one runs that could stop it, and after its time.
func TestZygoteNextEnds(t *testing.T) {
	harness.RequireZygotes(t)
	rt := createParking(t, time.Minute)
	before, waits := waitForNext(t, rt)
	p, err := rt.Spawn(t.Context(), "sleep", []string{"1000"}, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pid := runPID(t, rt); waits && pid <= before+1 {
		t.Errorf("a run got pid %d, that of the process that waited while another one ran", pid)
	}
	for range 5 { // no process waits while another one runs
		last := runPID(t, rt)
		time.Sleep(10 * time.Millisecond)
		if waiting := len(harness.JailProcesses()); waiting > 2 {
			t.Fatalf("%d processes beside pid 1 and sleep, after pid %d", waiting-2, last)
		}
	}
	p.Kill()
	if _, err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}

	rt = createParking(t, 50*time.Millisecond)
	waitForNext(t, rt)
	harness.WaitFor(t, "the process that waited has ended", func() bool { return !waiting() })
	if pid := runPID(t, rt); pid == 0 {
		t.Error("no pid")
	}
}

// Close ends it, and a negative time means that none waits. harness.Main looks for leaks.
func TestZygoteNextIsClosed(t *testing.T) {
	for range 20 {
		rt := createParking(t, time.Minute)
		_ = runPID(t, rt)
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
	rt := createParking(t, -1)
	for last := runPID(t, rt); last < 10; {
		pid := runPID(t, rt)
		if pid != last+1 {
			t.Errorf("pid %d after %d", pid, last)
		}
		last = pid
	}
}
