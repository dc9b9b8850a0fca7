package zygote

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// parkedPID finds the one process of a run that exists.
func parkedPID(t *testing.T, rt *runtime.NodeRuntime) int {
	t.Helper()
	var found []int
	for _, pid := range harness.JailProcesses() {
		if harness.Lines("/proc/" + pid + "/comm")[0] != "catatonit" {
			var n int
			if _, err := fmt.Sscan(pid, &n); err != nil {
				t.Fatal(err)
			}
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		t.Fatalf("processes %v, want the parked one", found)
	}
	return found[0]
}

// A parked process behaves like any other first run: the time that it waited is not
// visible.
func TestZygoteParkedRun(t *testing.T) {
	const program = `
		console.log('out'); console.error('err');
		const { a } = await import('node:fs').then((fs) => ({ a: fs.readdirSync('.') }));
		__return({ pid: process.pid, uptime: process.uptime(), now: performance.now(), started: Date.now() - performance.timeOrigin,
			argv: process.argv.slice(2), env: process.env.OWN, cwd: process.cwd(), random: Math.random(), cpu: process.cpuUsage(), a });
		process.exitCode = 3;`
	rt := harness.CreateParked(t, runtime.Options{})
	pid := 0
	if !harness.InGVisor() { // where the host does not see it
		pid = parkedPID(t, rt)
	}
	const wait = 700 * time.Millisecond
	time.Sleep(wait)
	options := runtime.RunOptions{Args: []string{"an argument"}, Env: map[string]string{"OWN": "1"}, Cwd: "/tmp"}
	began := time.Now()
	first := harness.Run(t, rt, program, options)
	took := time.Since(began).Seconds()
	if err := unix.Kill(pid, 0); pid != 0 && err != unix.ESRCH {
		t.Errorf("the parked process: %v, want it gone with the first run", err)
	}
	second := harness.Run(t, rt, program, options)
	var a, b struct {
		PID                  int
		Uptime, Now, Started float64
		Argv                 []string
		Env, Cwd             string
		Random               float64
	}
	for res, to := range map[*runtime.Result]any{first: &a, second: &b} {
		if string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || res.ExitCode != 3 {
			t.Errorf("printed %q and %q, exit code %d", res.Stdout, res.Stderr, res.ExitCode)
		}
		if err := res.Decode(to); err != nil {
			t.Fatal(err)
		}
	}
	const rounding = 0.002 // Date.now returns milliseconds
	if limit := took + rounding; a.Uptime > limit || a.Now > 1000*limit || a.Started > 1000*limit {
		t.Errorf("uptime %v s, now %v ms, started %v ms ago: that is from before the program", a.Uptime, a.Now, a.Started)
	}
	if a.PID >= b.PID || a.Random == b.Random || a.Cwd != "/tmp" || a.Env != "1" || len(a.Argv) != 1 {
		t.Errorf("first %+v, then %+v", a, b)
	}
	if first.Usage.CPU > 5*second.Usage.CPU || first.Usage.CPU <= 0 {
		t.Errorf("used %v, the second %v", first.Usage.CPU, second.Usage.CPU)
	}
}

// If a parked process was killed, the run starts from the zygote.
func TestZygoteParkedDies(t *testing.T) {
	harness.RequireZygotes(t)
	rt := harness.CreateParked(t, runtime.Options{})
	if err := unix.Kill(parkedPID(t, rt), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
}

// A parked process gets the limits of any run, and the first run need not be JavaScript.
func TestZygoteParkedLimits(t *testing.T) {
	rt := harness.CreateParked(t, runtime.Options{Limits: runtime.Limits{Memory: 64 << 20}})
	res := harness.Run(t, rt, `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`, runtime.RunOptions{})
	if res.Cause != runtime.CauseMemory {
		t.Errorf("cause %q, exit code %d", res.Cause, res.ExitCode)
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); res.Cause != runtime.CauseNone {
		t.Errorf("after it: cause %q", res.Cause)
	}
	rt = harness.CreateParked(t, runtime.Options{})
	res = harness.Run(t, rt, `for (;;);`, runtime.RunOptions{Timeout: 300 * time.Millisecond})
	if res.Cause != runtime.CauseTimeout {
		t.Errorf("cause %q, exit code %d", res.Cause, res.ExitCode)
	}
	rt = harness.CreateParked(t, runtime.Options{})
	res, err := rt.Command(t.Context(), "sh", []string{"-c", "echo $0; exit 4"}, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "sh\n" || res.ExitCode != 4 {
		t.Errorf("%+v, %v", res, err)
	}
	rt = harness.CreateParked(t, runtime.Options{})
	if _, err = rt.Command(t.Context(), "nothing", nil, runtime.RunOptions{}); err == nil {
		t.Error("a program that does not exist ran")
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
}
