package escape

import (
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// give is a program that returns a value, hands its outputs and the way of its values
// on, and ends.
const give = `
	import { spawnSync } from 'node:child_process';
	import fs from 'node:fs';
	__return('mine');
	fs.writeSync(1, 'out');
	const { status, stderr } = spawnSync('/workspace/pass', process.argv.slice(2), { stdio: ['ignore', 1, 2, 3] });
	if (status !== 0) throw new Error('status ' + status);
`

// Whoever holds a run's descriptors after its end, the control pipe among them, keeps
// nobody waiting: the run returns what it returned, at once.
func TestHeldControlPipe(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	pass := harness.Install(t, rt, "pass")
	taker := harness.StartCommand(t, rt, pass, "take", "/tmp/take")
	for name, args := range map[string]string{
		"in flight, in a cycle of sockets": "bury", "by a daemon": "daemon", "by another run": "give /tmp/take",
	} {
		t.Run(name, func(t *testing.T) {
			res := harness.Run(t, rt, give, runtime.RunOptions{Args: strings.Fields(args), Timeout: 20 * time.Second})
			if string(res.Value) != `"mine"` || string(res.Stdout) != "out" || res.ExitCode != 0 {
				t.Errorf("value %s, stdout %s, exit code %d, %s", res.Value, res.Stdout, res.ExitCode, res.Stderr)
			}
			if res.Duration > 10*time.Second { // half of its time; a start takes far less
				t.Errorf("took %v", res.Duration)
			}
		})
	}
	if got := taker.Next(t); got != "taken" {
		t.Errorf("%s: this test proves nothing of other runs", got)
	}
}

// One that writes to them without end does not either. What it writes while the run
// lives is taken for the run's, which gave it the means.
func TestFloodedControlPipe(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: 1 << 20}})
	pass := harness.Install(t, rt, "pass")
	flooder := harness.StartCommand(t, rt, pass, "flood", "/tmp/flood")
	for range 3 {
		res := harness.Run(t, rt, give+`await new Promise(r => setTimeout(r, 100))`, runtime.RunOptions{Args: []string{"give", "/tmp/flood"}, Timeout: 20 * time.Second})
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
