package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/test/harness"
)

// endless are snippets that do not end. Each has a log, a fact and, with the adapter, a derived
// value before.
var endless = []struct {
	name, code string
	settles    bool // for the adapter
}{
	{"top level", `for (;;);`, false},
	{"a timer", `setTimeout(() => { for (;;); }, 1)`, true},
	{"after an await", `await null; for (;;);`, false},
	{"waiting", `await new Promise((done) => setTimeout(done, 60_000))`, false},
	{"a promise", `Promise.resolve().then(() => { for (;;); })`, true},
	{"an interval", `setInterval(() => {}, 10)`, true},
	{"an immediate", `setImmediate(() => { for (;;); })`, true},
	{"microtasks", `const again = () => queueMicrotask(again); again()`, true},
	{"a child", `(await import('node:child_process')).spawn('sleep', ['1000'])`, true},
	{"logging", `for (;;) console.log('y'.repeat(100))`, false},
}

// directiveState is a snippet with a log, a fact and a derived value.
const directiveState = `
	import { createModule, createSystem } from '@directive-run/core';
	const system = createSystem({ module: createModule('m', { init: (facts) => { facts.a = 1 }, derive: { b: (facts) => facts.a + 1 } }) });
	system.start();
	console.log('begun');`

// Logs, facts and derived values survive a timeout, wherever the snippet is.
func TestTimeout(t *testing.T) {
	none := newRunner(t, snippets.Options{})
	directive := newRunner(t, snippets.Options{Adapter: snippets.Directive, NodeModules: packages, NoLint: true})
	for _, e := range harness.Some(endless) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			checkTimeout(t, none, "console.log('begun'); export const a = 1;"+e.code, `{"a":1}`, `{}`)
			if e.settles {
				return // and the adapter ends it
			}
			checkTimeout(t, directive, directiveState+e.code, `{"a":1}`, `{"b":2}`)
		})
	}
}

// In a shared sandbox, they survive a timeout and a throw as well, and the next snippet runs.
func TestSharedEnd(t *testing.T) {
	r := newRunner(t, snippets.Options{Shared: true, Adapter: snippets.Directive, NodeModules: packages, NoLint: true})
	for range 2 {
		checkTimeout(t, r, directiveState+`for (;;);`, `{"a":1}`, `{"b":2}`)
		out := run(t, r, snippets.Input{Source: directiveState + `throw new Error('no');`, Timeout: snippets.MaxTimeout})
		if diff := cmp.Diff([]string{"[log] begun"}, out.Logs); diff != "" || string(out.Facts) != `{"a":1}` || string(out.Derived) != `{"b":2}` {
			t.Errorf("%s, facts %s, derived %s", diff, out.Facts, out.Derived)
		}
		if len(out.Errors) != 1 || !strings.HasPrefix(out.Errors[0], "Error: no\n    at src/main.ts:5:") || out.TimedOut {
			t.Errorf("%q, timed out %v", out.Errors, out.TimedOut)
		}
	}
}

// checkTimeout gives a snippet more time if a busy machine has not even begun it.
func checkTimeout(t *testing.T, r *snippets.Runner, source, facts, derived string) {
	t.Helper()
	var out *snippets.Output
	for timeout := 400 * time.Millisecond; timeout <= snippets.MaxTimeout; timeout *= 4 {
		if out = run(t, r, snippets.Input{Source: source, Timeout: timeout}); string(out.Facts) != "{}" {
			break
		}
	}
	if string(out.Facts) != facts || string(out.Derived) != derived || len(out.Logs) == 0 || out.Logs[0] != "[log] begun" {
		t.Errorf("logs %.300q, facts %s, derived %s", out.Logs, out.Facts, out.Derived)
	}
	if !out.TimedOut || len(out.Errors) == 0 || out.Errors[0][:17] != "wall-clock budget" {
		t.Errorf("timed out %v, %q", out.TimedOut, out.Errors)
	}
}

// began starts a snippet that waits, and returns when it has printed a line.
func began(ctx context.Context, t *testing.T, r *snippets.Runner) <-chan result {
	t.Helper()
	line, done := make(chan string, 1), make(chan result, 1)
	source := `console.log('begun'); export const a = 1; setInterval(() => {}, 1000)`
	go func() {
		out, err := r.Run(ctx, snippets.Input{Source: source, Timeout: snippets.MaxTimeout, OnLog: func(text string) { line <- text }})
		done <- result{out, err}
	}()
	select {
	case text := <-line:
		if text != "[log] begun" {
			t.Fatalf("line %q", text)
		}
	case got := <-done:
		t.Fatalf("it has ended: %+v, %v", got.out, got.err)
	}
	return done
}

type result struct {
	out *snippets.Output
	err error
}

var errStopped = errors.New("stopped by the test")

// A canceled snippet ends immediately, and its output so far is kept.
func TestCancel(t *testing.T) {
	r := newRunner(t, snippets.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := began(ctx, t, r)
	cancel(errStopped)
	got := <-done
	if !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, errStopped) {
		t.Errorf("error %v", got.err)
	}
	if diff := cmp.Diff([]string{"sandbox: aborted by caller signal"}, got.out.Errors); diff != "" || got.out.TimedOut {
		t.Errorf("%s, timed out %v", diff, got.out.TimedOut)
	}
	if diff := cmp.Diff([]string{"[log] begun"}, got.out.Logs); diff != "" {
		t.Error(diff)
	}
}

// A snippet that is canceled while it waits for its turn never runs, and frees its place.
func TestCancelInQueue(t *testing.T) {
	r := newRunner(t, snippets.Options{MaxConcurrent: 1})
	first, stop := context.WithCancel(t.Context())
	running := began(first, t, r)
	canceled, cancel := context.WithCancel(t.Context())
	waiting := make(chan result, 2)
	for _, ctx := range []context.Context{canceled, t.Context()} {
		go func() {
			out, err := r.Run(ctx, snippets.Input{Source: `console.log('ran')`})
			waiting <- result{out, err}
		}()
	}
	cancel()
	got := <-waiting
	if diff := cmp.Diff([]string{"sandbox: aborted by caller signal"}, got.out.Errors); diff != "" || !errors.Is(got.err, context.Canceled) || len(got.out.Logs) > 0 {
		t.Errorf("%s, %v, %q", diff, got.err, got.out.Logs)
	}
	select {
	case got := <-waiting:
		t.Errorf("a snippet ran beside another one: %+v", got.out)
	default:
	}
	stop()
	<-running
	if got := <-waiting; got.err != nil || len(got.out.Logs) != 1 {
		t.Errorf("%+v, %v", got.out, got.err)
	}
}

// Close ends what runs, and leaves nothing.
func TestClose(t *testing.T) {
	for _, shared := range []bool{false, true} {
		r := newRunner(t, snippets.Options{Shared: shared})
		done := began(t.Context(), t, r)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := <-done; !errors.Is(got.err, runtime.ErrClosed) {
			t.Errorf("shared %v: %+v, %v", shared, got.out, got.err)
		}
		if out, err := r.Run(t.Context(), snippets.Input{Source: "1"}); !errors.Is(err, runtime.ErrClosed) || out != nil {
			t.Errorf("shared %v: after Close: %+v, %v", shared, out, err)
		}
		if err := runtime.CloseIdle(); err != nil { // the process that has compiled the snippets
			t.Error(err)
		}
		harness.CheckNoRuns(t)
	}
	if jails := harness.JailState(); len(jails) > 0 {
		t.Errorf("left behind: %q", jails)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []snippets.Options{
		{MaxConcurrent: -1}, {Network: "private"}, {NodeModules: "/nonexistent", Cache: t.TempDir()},
		{Sandbox: runtime.Options{Permissions: permissions(t, `{"network":"allow"}`)}}, {Sandbox: runtime.Options{Image: "no-such-image-!"}},
	} {
		r, err := snippets.New(o)
		if err == nil {
			_, err = r.Run(t.Context(), snippets.Input{Source: "1"})
			_ = r.Close()
		}
		if err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// Permissions restrict snippets.
func TestPermissions(t *testing.T) {
	r := newRunner(t, snippets.Options{Sandbox: runtime.Options{Permissions: permissions(t, `{"childProcess":"deny"}`)}})
	out := run(t, r, snippets.Input{Source: `
		import { spawnSync } from 'node:child_process';
		console.log(spawnSync('true').error?.code);`})
	if len(out.Logs) != 1 || out.Logs[0] != "[log] EPERM" || len(out.Denials) == 0 {
		t.Errorf("%q, denials %+v, %q", out.Logs, out.Denials, out.Errors)
	}
}
