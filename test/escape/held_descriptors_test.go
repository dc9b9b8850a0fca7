package escape

import (
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// passOn is a program that returns a value, passes its output and control descriptors to
// another process, and ends.
const passOn = `
	import { spawnSync } from 'node:child_process';
	import fs from 'node:fs';
	__return('mine');
	fs.writeSync(1, 'out');
	const { status, stderr } = spawnSync('/workspace/pass', process.argv.slice(2), { stdio: ['ignore', 1, 2, 3] });
	if (status !== 0) throw new Error('status ' + status);
`

// A run returns its result immediately when it ends, even if another process still holds its
// descriptors, the control pipe among them.
func TestHeldControlPipe(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	pass := harness.Install(t, rt, "pass")
	taker := harness.StartCommand(t, rt, pass, "take", "/tmp/take")
	for name, args := range map[string]string{
		"in flight, in a cycle of sockets": "bury", "by a daemon": "daemon", "by another run": "give /tmp/take",
	} {
		t.Run(name, func(t *testing.T) {
			res := harness.Run(t, rt, passOn, runtime.RunOptions{Args: strings.Fields(args), Timeout: 20 * time.Second})
			if string(res.Value) != `"mine"` || string(res.Stdout) != "out" || res.ExitCode != 0 {
				t.Errorf("value %s, stdout %s, exit code %d, %s", res.Value, res.Stdout, res.ExitCode, res.Stderr)
			}
			if res.Duration > 10*time.Second { // half of its timeout, but far more than a start takes
				t.Errorf("took %v", res.Duration)
			}
		})
	}
	if got := taker.Next(t); got != "taken" {
		t.Errorf("%s: this test proves nothing of other runs", got)
	}
}

// Nor is the run delayed by a process that writes to its descriptors without end. What that
// process writes while the run lives counts as the run's output, because the run passed the
// descriptors on.
func TestFloodedControlPipe(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: 1 << 20}})
	pass := harness.Install(t, rt, "pass")
	flooder := harness.StartCommand(t, rt, pass, "flood", "/tmp/flood")
	const untilFull = passOn + `
		while (!fs.existsSync('/tmp/flood.full')) await new Promise(r => setTimeout(r, 5));
		fs.rmSync('/tmp/flood.full');
	`
	for range 3 {
		res := harness.Run(t, rt, untilFull, runtime.RunOptions{Args: []string{"give", "/tmp/flood"}, Timeout: 20 * time.Second})
		if string(res.Value) != `"mine"` || !strings.HasPrefix(string(res.Stdout), "out") || res.ExitCode != 0 {
			t.Errorf("value %.100s, stdout %.100q, exit code %d, %s", res.Value, res.Stdout, res.ExitCode, res.Stderr)
		}
		if len(res.Stdout) < 1<<20 {
			t.Errorf("%d bytes of output: this test proves nothing", len(res.Stdout))
		}
		if res.Duration > 10*time.Second {
			t.Errorf("took %v", res.Duration)
		}
	}
	if got := flooder.Next(t); got != "taken" {
		t.Errorf("%s: this test proves nothing", got)
	}
}
