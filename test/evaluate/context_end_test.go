package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// ended checks that a context has ended for a reason.
func ended(t testing.TB, c *runtime.Context, why string) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("the context has not ended")
	}
	_, err := c.Evaluate(t.Context(), `1`, runtime.EvaluateOptions{})
	if !errors.Is(err, runtime.ErrContextEnded) || !errors.Is(c.Err(), runtime.ErrContextEnded) || !strings.Contains(err.Error(), why) {
		t.Errorf("%v, and %v; want %s", err, c.Err(), why)
	}
}

// A cell that times out leaves the variables of others as they are, if Node can continue.
func TestContextTimeout(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{
		"slow": func(ctx context.Context, _ json.RawMessage) (any, error) {
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
			return 1, nil
		},
	}})
	c := newContext(t, rt, runtime.ContextOptions{})
	want(t, c, `let state = 1, ran = 0`, ``)
	for _, code := range harness.Some([]string{
		`state++; await new Promise(r => setTimeout(r, 60000)); ran++`,
		`state++; for (;;);`,
		`state++; for (;;) try { for (;;); } catch {}`,
		`state++; await null; for (;;);`,
		`state++; process.nextTick(() => { for (;;); }); 1`,
		`state++; await new Promise(r => setTimeout(r, 5)); for (;;);`,
		`state++; await new Promise(r => setImmediate(r)); await null; for (;;);`,
		`state++; await require('node:fs/promises').readFile('/proc/self/stat'); for (;;);`,
		`state++; for await (const part of require('node:fs').createReadStream('/proc/self/status')) for (;;);`,
		`state++; /(x+x+)+y/.test('x'.repeat(60))`,
		`state++; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
		`state++; require('node:child_process').execSync('sleep 60')`,
		`state++; slow()`,
		`state++; for (;;) try { slow() } catch {}`,
		`state++; await slow.async(); ran++`,
		`state++; ({ toJSON() { for (;;); } })`,
		`state++; throw { get [Symbol.toStringTag]() { for (;;); } }`,
	}) {
		began := time.Now()
		e := cell(t, c, code, runtime.EvaluateOptions{Timeout: 300 * time.Millisecond})
		if e.Error == nil || e.Error.Error() != "TimeoutError: the code took longer than 300ms" || e.Cause != "" {
			t.Fatalf("%s: %s %v %q", code, e.Value, e.Error, e.Cause)
		}
		if took := time.Since(began); took < 300*time.Millisecond || took > 15*time.Second {
			t.Errorf("%s: it took %v", code, took)
		}
	}
	want(t, c, `[state > 3, ran]`, `[true,0]`) // on a busy machine not all of them run in time

	// Compiling takes longer than this.
	e := cell(t, c, `state = -1`, runtime.EvaluateOptions{Timeout: time.Nanosecond})
	if e.Error == nil || e.Error.Error() != "TimeoutError: the code took longer than 1ns" || e.Cause != "" {
		t.Errorf("%v %q", e.Error, e.Cause)
	}
	want(t, c, `state > 3`, `true`)

	harness.InTime(100*time.Millisecond, func(limit time.Duration) bool {
		c = newContext(t, rt, runtime.ContextOptions{})
		began := time.Now()
		e = cell(t, c, `setTimeout(() => { console.log('busy'); for (;;); }, 5); await new Promise(r => setTimeout(r, 60000))`, runtime.EvaluateOptions{Timeout: limit})
		if late := time.Since(began) - limit; late > 15*time.Second {
			t.Errorf("it ended %v late", late)
		}
		return len(e.Logs) > 0 && e.Cause != "" // or else it has not been busy before its timeout
	})
	if e.Cause != runtime.CauseTimeout || e.Error == nil || !strings.HasPrefix(e.Error.Error(), "TimeoutError: the code took longer than ") || !strings.HasSuffix(e.Error.Error(), " could not be interrupted), and what its variables held is lost") {
		t.Errorf("busy in a callback: %v %q", e.Error, e.Cause)
	}
	ended(t, c, "could not be interrupted")
}

// An earlier cell's callback may block the process when the next cell should begin. That
// cell times out, and the context ends.
func TestContextBusyLeftover(t *testing.T) {
	busy := make(chan struct{}, 1)
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{OnLog: func(runtime.Log) { busy <- struct{}{} }})
	want(t, c, `let state = 1; new Promise(r => setTimeout(r, 20)).then(() => { console.log('busy'); for (;;); }); 1`, `1`)
	select {
	case <-busy:
	case <-time.After(time.Minute):
		t.Fatal("it is not busy")
	}
	e := cell(t, c, `state = 2`, runtime.EvaluateOptions{Timeout: 200 * time.Millisecond})
	if e.Error == nil || e.Error.Name != "TimeoutError" || e.Cause != "" {
		t.Fatalf("%s %v %q", e.Value, e.Error, e.Cause)
	}
	want(t, c, `state`, `1`)
}

// Asking for completions does not interrupt a busy process. The next cell begins when the
// process is free, or times out.
func TestContextBusyCompletes(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	busy := make(chan struct{}, 2)
	c := newContext(t, rt, runtime.ContextOptions{OnLog: func(runtime.Log) { busy <- struct{}{} }})
	want(t, c, `let state = 1; const { existsSync } = require('node:fs'); setTimeout(() => { console.log('busy'); while (!existsSync('free')); }, 20); 1`, `1`)
	<-busy
	ask := func() {
		t.Helper()
		if _, names, err := c.Complete(t.Context(), "sta"); err != nil || len(names) != 0 {
			t.Errorf("%q, %v", names, err)
		}
	}
	for range 2 {
		ask()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := c.Complete(ctx, "sta"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a canceled completion: %v", err)
	}
	if err := rt.FS().MkdirAll("/workspace/free", 0); err != nil {
		t.Fatal(err)
	}
	want(t, c, `state`, `1`)

	want(t, c, `new Promise(r => setTimeout(r, 20)).then(() => { console.log('busy'); for (;;); }); 1`, `1`)
	<-busy
	ask()
	e := cell(t, c, `state = 2`, runtime.EvaluateOptions{Timeout: 200 * time.Millisecond})
	if e.Error == nil || e.Error.Name != "TimeoutError" || e.Cause != "" {
		t.Fatalf("%s %v %q", e.Value, e.Error, e.Cause)
	}
	want(t, c, `state`, `1`)
}

// The same holds for a cell that its caller cancels.
func TestContextCanceled(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	want(t, c, `let state = 1`, ``)
	for _, code := range []string{`for (;;);`, `await new Promise(r => setTimeout(r, 60000))`} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		e, err := c.Evaluate(ctx, code, runtime.EvaluateOptions{})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || e.Error == nil || e.Error.Name != "CanceledError" || e.Cause != "" {
			t.Errorf("%s: %+v, %v", code, e, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := c.Evaluate(ctx, `state = 2`, runtime.EvaluateOptions{}); !errors.Is(err, context.Canceled) || e.Error == nil || e.Error.Name != "CanceledError" {
		t.Errorf("before its turn: %+v, %v", e, err)
	}
	want(t, c, `state`, `1`)
}

// The cell that ends the process reports why, and so do all later ones.
func TestContextEnds(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 96 << 20}})
	for _, tc := range []struct{ code, want, why string }{
		{`process.exit(3)`, "ExitError: the code ended its process with exit code 3. The context has ended", "its process has exited with code 3"},
		{`process.exit(0)`, "ExitError: the code ended its process with exit code 0. The context has ended", "its process has exited with code 0"},
		{`setTimeout(() => process.exit(4), 10); await new Promise(r => setTimeout(r, 9999))`, "ExitError: the code ended its process with exit code 4.", "exited with code 4"},
		{`process.kill(process.pid, 'SIGKILL'); await new Promise(r => setTimeout(r, 9999))`, "SignalError: the code was ended by SIGKILL. The context", "ended by SIGKILL"},
		{`const all = []; for (;;) all.push({ all })`, "OutOfMemoryError: the code exceeded its memory limit", "it exceeded its memory limit"},
		{`const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))`, "OutOfMemoryError: the code exceeded its memory limit", "it exceeded its memory limit"},
		{`process.removeAllListeners('uncaughtException'); setTimeout(() => { throw new Error('mine') }); await new Promise(r => setTimeout(r, 9999))`, "ExitError: the code ended its process with exit code 1", "exited with code 1"},
	} {
		c := newContext(t, rt, runtime.ContextOptions{})
		want(t, c, `1`, `1`)
		e := cell(t, c, tc.code, runtime.EvaluateOptions{})
		if e.Error == nil || !strings.HasPrefix(e.Error.Error(), tc.want) || !strings.Contains(e.Error.Error(), "is lost") {
			t.Errorf("%s: %s, %v; want %s", tc.code, e.Value, e.Error, tc.want)
		}
		ended(t, c, tc.why)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c := newContext(t, rt, runtime.ContextOptions{})
	want(t, c, `setTimeout(() => process.exit(5), 20); 1`, `1`)
	ended(t, c, "exited with code 5")
}

// Close ends the running cell, and the waiting ones.
func TestContextClose(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{})
	var wg sync.WaitGroup
	started := make(chan struct{})
	wg.Go(func() {
		e, err := c.Evaluate(t.Context(), `console.log('up'); await new Promise(r => setTimeout(r, 60000))`, runtime.EvaluateOptions{OnLog: func(runtime.Log) { close(started) }})
		if !errors.Is(err, runtime.ErrContextEnded) || !errors.Is(err, runtime.ErrClosed) || e.Error == nil || e.Error.Name != "CanceledError" || e.Cause != runtime.CauseCanceled {
			t.Errorf("the one that went on: %+v, %v", e, err)
		}
	})
	<-started
	wg.Go(func() {
		if e, err := c.Evaluate(t.Context(), `1`, runtime.EvaluateOptions{}); !errors.Is(err, runtime.ErrContextEnded) || !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("the one that waited: %+v, %v", e, err)
		}
	})
	time.Sleep(50 * time.Millisecond)
	if c.Err() != nil {
		t.Error(c.Err())
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	ended(t, c, "already closed")
	if list := rt.Processes(); len(list) != 0 {
		t.Errorf("there are processes: %+v", list)
	}

	other, err := runtime.Create(t.Context(), harness.Options(runtime.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	c, err = other.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, c, `1`, `1`)
	if list := other.Processes(); len(list) != 1 || list[0].Name != "context.mjs" {
		t.Errorf("processes: %+v", list)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	ended(t, c, "already closed")
	if _, err := other.NewContext(t.Context(), runtime.ContextOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("of a closed runtime: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// The number of contexts and the time that they may be idle are limited.
func TestContextBounds(t *testing.T) {
	rt := harness.Create(t, runtime.Options{MaxContexts: 2})
	first, second := newContext(t, rt, runtime.ContextOptions{}), newContext(t, rt, runtime.ContextOptions{})
	if _, err := rt.NewContext(t.Context(), runtime.ContextOptions{}); !errors.Is(err, runtime.ErrManyContexts) {
		t.Errorf("a third: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	used := false
	harness.InTime(300*time.Millisecond, func(limit time.Duration) bool { // a busy machine may not use it in time
		c := newContext(t, rt, runtime.ContextOptions{IdleTimeout: limit})
		var err error
		for range 4 { // longer than it may be idle
			if _, err = c.Evaluate(t.Context(), fmt.Sprintf(`await new Promise(r => setTimeout(r, %d)); 1`, limit.Milliseconds()/2), runtime.EvaluateOptions{}); err != nil {
				break
			}
		}
		ended(t, c, "nobody used it for "+limit.String())
		used = err == nil
		return used
	})
	if !used {
		t.Error("a context that is used ends as an idle one")
	}
	want(t, newContext(t, rt, runtime.ContextOptions{}), `1`, `1`)
	want(t, first, `1`, `1`)
	if _, err := runtime.Create(t.Context(), harness.Options(runtime.Options{MaxContexts: -1})); err == nil || !strings.Contains(err.Error(), "MaxContexts") {
		t.Errorf("-1 contexts: %v", err)
	}
}

// A context counts as one of MaxConcurrentRuns.
func TestContextCountsAsRun(t *testing.T) {
	rt := harness.Create(t, runtime.Options{MaxConcurrentRuns: 1})
	c := newContext(t, rt, runtime.ContextOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := rt.NewContext(ctx, runtime.ContextOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another: %v", err)
	}
	done := make(chan *runtime.Result)
	go func() { done <- harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}) }()
	select {
	case <-done:
		t.Error("a run started")
	case <-time.After(100 * time.Millisecond):
	}
	c.Close()
	if res := <-done; string(res.Value) != `1` {
		t.Errorf("%+v", res)
	}
}

// Concurrent cells run one after another.
func TestContextTurns(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	want(t, c, `let n = 0, inside = 0, most = 0`, ``)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%4 == 0 {
				if _, names, err := c.Complete(t.Context(), "insi"); err != nil || len(names) != 1 {
					t.Errorf("%q, %v", names, err)
				}
				return
			}
			want(t, c, fmt.Sprintf(`most = Math.max(most, ++inside); await new Promise(r => setTimeout(r, 2)); inside--; n++; %d`, i), fmt.Sprint(i))
		})
	}
	wg.Wait()
	want(t, c, `[n, most]`, `[15,1]`)
}
