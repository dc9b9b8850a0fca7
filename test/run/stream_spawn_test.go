package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// A caller can talk to a spawned process by its events, also if it starts to consume them
// later. Breaking out of the loop does not end the process.
func TestStreamSpawn(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := spawnCode(t, rt, `
		import { createInterface } from 'node:readline';
		process.stdout.write('up\n');
		for await (const line of createInterface({ input: process.stdin })) { process.stdout.write('got ' + line + '\n'); process.stderr.write('!'); }
		__return(1); process.exit(2)`, runtime.SpawnOptions{})
	buf := make([]byte, 3)
	if _, err := p.Stdout.Read(buf); err != nil || string(buf) != "up\n" {
		t.Fatalf("%q %v", buf, err)
	}
	h := &received{}
	for i := range 3 {
		send(t, p, fmt.Sprintf("%d\n", i))
		for e := range p.Events() {
			h.take(e)
			if strings.Count(string(h.out), "\n") == i+1 && len(h.errs) == i+1 {
				break
			}
		}
	}
	select {
	case <-p.Done():
		t.Fatal("it has ended")
	default:
	}
	if err := p.Stdin.Close(); err != nil {
		t.Error(err)
	}
	for e := range p.Events() {
		h.take(e)
	}
	h.ended(t)
	if string(h.out) != "got 0\ngot 1\ngot 2\n" || string(h.errs) != "!!!" {
		t.Errorf("%q %q", h.out, h.errs)
	}
	if res := h.result(t); res.ExitCode != 2 || string(res.Value) != "1" || res.ExitCode != wait(t, p).ExitCode {
		t.Errorf("%+v", res)
	}
	for e := range p.Events() {
		t.Errorf("after the end: %T", e)
	}
}

// Output, calls and denials from before the first consumer are delivered, also after the
// end.
func TestStreamSpawnLate(t *testing.T) {
	rt := harness.Create(t, runtime.Options{
		Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}},
		Bindings: map[string]any{
			"f":    func(_ context.Context, args json.RawMessage) (any, error) { return args, nil },
			"hang": func(ctx context.Context, _ json.RawMessage) (any, error) { <-ctx.Done(); return nil, nil },
		},
	})
	const code = `
		import { spawnSync } from 'node:child_process'; import { openSync, writeSync } from 'node:fs';
		spawnSync('true'); spawnSync('true'); for (let i = 0; i < 200; i++) f(i); hang.async(); await new Promise(done => setTimeout(done, 50));
		writeSync(1, 'x'.repeat(60000)); writeSync(2, 'y'.repeat(60000)); openSync('/workspace/ready', 'w');`
	for name, tc := range map[string]struct {
		rest  string
		ended bool
	}{
		"live":  {`for await (const b of process.stdin); process.exit(3)`, false},
		"ended": {`process.exit(3)`, true},
	} {
		p := spawnCode(t, rt, code+tc.rest, runtime.SpawnOptions{})
		if tc.ended {
			wait(t, p)
		}
		untilReady(t, rt)
		events := p.Events()
		p.Stdin.Close()
		h := receive(t, events)
		if strings.Trim(string(h.out), "x") != "" || len(h.out) != 60000 || len(h.errs) != 60000 {
			t.Errorf("%s: %d and %d bytes", name, len(h.out), len(h.errs))
		}
		if res := h.result(t); res.ExitCode != 3 || len(h.calls) != 201 || len(res.Calls) != 201 || len(h.denials) != harness.Reported(1) || len(res.Denials) > 0 && res.Denials[0].Count != 2 {
			t.Errorf("%s: exit code %d, %d calls, of which %d are listed, denials %+v, %+v", name, res.ExitCode, len(h.calls), len(res.Calls), h.denials, res.Denials)
		}
		if err := rt.FS().Remove("/workspace/ready"); err != nil {
			t.Error(err)
		}
	}
}

// On a terminal all output is one stream, which ends with the process.
func TestStreamTerminal(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{Terminal: &runtime.Terminal{}}, "sh", "-c", "echo one; echo two >&2; read x; echo got $x; exit 4")
	h, sent := &received{}, false
	for e := range p.Events() {
		h.take(e)
		if !sent && strings.Contains(string(h.out), "two") {
			send(t, p, "three\n")
			sent = true
		}
	}
	h.ended(t)
	if string(h.out) != "one\r\ntwo\r\nthree\r\ngot three\r\n" || len(h.errs) != 0 || h.result(t).ExitCode != 4 {
		t.Errorf("%q %q %+v", h.out, h.errs, h.exits)
	}
}

// A process whose events are not consumed ends like any other, and nothing waits for a
// consumer.
func TestStreamSpawnStalled(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cause runtime.Cause
		o     runtime.SpawnOptions
		end   func(*runtime.NodeRuntime, *runtime.Process)
	}{
		{"kill", runtime.CauseCanceled, runtime.SpawnOptions{}, func(_ *runtime.NodeRuntime, p *runtime.Process) { p.Kill() }},
		{"signal", runtime.CauseSignal, runtime.SpawnOptions{}, func(_ *runtime.NodeRuntime, p *runtime.Process) { p.Signal(unix.SIGTERM) }},
		{"close", runtime.CauseCanceled, runtime.SpawnOptions{}, func(rt *runtime.NodeRuntime, _ *runtime.Process) { rt.Close() }},
		{"timeout", runtime.CauseTimeout, runtime.SpawnOptions{Timeout: 1}, func(*runtime.NodeRuntime, *runtime.Process) {}},
		{"timeout of a terminal", runtime.CauseTimeout, runtime.SpawnOptions{Timeout: 1, Terminal: &runtime.Terminal{}}, func(*runtime.NodeRuntime, *runtime.Process) {}},
	} {
		rt := harness.CreateExact(t, harness.Options(runtime.Options{}))
		const code = "while :; do echo more and more; done"
		var p *runtime.Process
		var first *received
		begin := func() {
			first = &received{}
			for e := range p.Events() {
				first.take(e)
				break
			}
		}
		if tc.o.Timeout == 0 {
			p = spawn(t, rt, tc.o, "sh", "-c", code)
			begin()
		} else {
			harness.InTime(300*time.Millisecond, func(limit time.Duration) bool {
				tc.o.Timeout = limit
				var err error
				if p, err = rt.Spawn(t.Context(), "sh", []string{"-c", code}, tc.o); err != nil {
					return false
				}
				begin()
				return len(first.out) > 0
			})
		}
		tc.end(rt, p)
		if res := wait(t, p); res.Cause != tc.cause {
			t.Errorf("%s: %+v", tc.name, res)
		}
		h := receive(t, p.Events())
		if !strings.HasPrefix(string(first.out)+string(h.out), "more and more") || h.result(t).Cause != tc.cause {
			t.Errorf("%s: %d bytes, %+v", tc.name, len(h.out), h.exits)
		}
		if err := p.Signal(unix.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: it has not ended: %v", tc.name, err)
		}
	}
}
