package escape

import (
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// When Run returns, no process of the run is left, however the run ended and however
// difficult it is to kill its processes. Neither is its cgroup. The jail's pid 1 reaps the
// zombies soon.
func TestLeaveNothingBehind(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Pids: 256}}) // on a busy machine more processes live at once
	harness.Install(t, rt, "leave")
	const start = `
		import { execFileSync, spawn } from 'node:child_process';
		import { Worker } from 'node:worker_threads';
		import fs from 'node:fs';
		process.on('SIGHUP', () => {}); // gVisor sends it if a process of the group is stopped while another one ends
		for (let i = 0; i < 2; i++) new Worker('for (;;);', { eval: true });
		fs.readFile('/dev/ptmx', () => {}); // a libuv thread that blocks in the kernel
		spawn('sleep', ['1000'], { detached: true, stdio: 'inherit' }).unref();
		execFileSync('/workspace/leave', { stdio: 'inherit' });
		__return(fs.readdirSync('/proc').filter(Number).length);
	`
	for name, tc := range map[string]struct {
		end   string
		cause runtime.Cause
		code  int
	}{
		"exits":          {end: `process.exit(3)`, code: 3},
		"throws":         {end: `throw new Error('x')`, code: 1},
		"kills itself":   {end: `process.kill(process.pid, 'SIGKILL')`, cause: runtime.CauseSignal, code: 137},
		"aborts":         {end: `process.abort()`, cause: runtime.CauseSignal, code: 134},
		"takes too long": {end: `for (;;);`, cause: runtime.CauseTimeout, code: 137},
		"stops itself":   {end: `process.kill(process.pid, 'SIGSTOP')`, cause: runtime.CauseTimeout, code: 137},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if tc.cause == runtime.CauseTimeout {
				limit = time.Second
			}
			res := harness.Run(t, rt, start+tc.end, runtime.RunOptions{Timeout: limit})
			for res.Cause == runtime.CauseTimeout && len(res.Value) == 0 && limit < time.Minute { // a busy machine
				limit *= 4
				res = harness.Run(t, rt, start+tc.end, runtime.RunOptions{Timeout: limit})
			}
			harness.CheckNoRuns(t)
			if string(res.Stdout) != "8 kinds are up\n" || len(res.Value) < 2 { // some ten processes
				t.Errorf("%s processes, %s%s: this test proves nothing", res.Value, res.Stdout, res.Stderr)
			}
			if res.Cause != tc.cause || res.ExitCode != tc.code || res.Duration > limit+10*time.Second {
				t.Errorf("cause %q, exit code %d after %v", res.Cause, res.ExitCode, res.Duration)
			}
			harness.WaitFor(t, "the jail's pid 1 to reap what was killed", func() bool {
				return len(strings.Fields(harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "echo /proc/[0-9]*"))) == 2
			})
		})
	}
}

// The same holds for a command of the image, without Node.
func TestCommandLeavesNothingBehind(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	if got := harness.Output(t, rt, runtime.RunOptions{}, harness.Install(t, rt, "leave")); got != "8 kinds are up" {
		t.Errorf("%s: this test proves nothing", got)
	}
	harness.CheckNoRuns(t)
}
