package evaluate

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/runtime"
	"gaol/test/harness"
)

// places are programs that do not end. begin() comes before the place where they stay.
var places = []struct{ name, code string }{
	{"top level", `begin(); for (;;);`},
	{"callback of a timer", `begin(); setTimeout(() => { for (;;); }, 1)`},
	{"after an await", `begin(); await null; for (;;);`},
	{"callback of a promise", `begin(); Promise.resolve().then(() => { for (;;); })`},
	{"waiting", `begin(); setInterval(() => {}, 100_000)`},
	{"waiting at an await", `begin(); await new Promise((done) => setTimeout(done, 100_000))`},
	{"after an await of a timer", `begin(); await new Promise((done) => setTimeout(done, 1)); for (;;);`},
	{"promises without end", `begin(); (async () => { for (;;) await null; })()`},
	{"microtasks without end", `begin(); const again = () => queueMicrotask(again); again()`},
	{"tick", `begin(); process.nextTick(() => { for (;;); })`},
	{"a later timer", `begin(); setTimeout(() => {}, 1); setTimeout(() => { for (;;); }, 1)`},
	{"promise in a timer", `begin(); setTimeout(() => Promise.resolve().then(() => { for (;;); }), 1)`},
	{"immediate", `begin(); setImmediate(() => { for (;;); })`},
	{"immediates without end", `begin(); const again = () => setImmediate(again); again()`},
	{"interval", `begin(); setInterval(() => { for (;;); }, 1)`},
	{"blocked", `begin(); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`},
	{"import", `begin(); await import('data:text/javascript,for(;;);')`},
	{"a loop that catches", `begin(); for (;;) try { for (;;); } catch {}`},
	{"a script", `begin(); (await import('node:vm')).runInThisContext('for (;;);')`},
}

const graceHead = `globalThis.__interrupted = () => ({ begun: globalThis.begun === 1 }); const begin = () => (globalThis.begun = 1);`

// interrupted evaluates a program until its timeout. A busy machine may need longer for it to
// begin.
func interrupted(t *testing.T, rt *runtime.NodeRuntime, code string) *runtime.Evaluation {
	t.Helper()
	for timeout := 400 * time.Millisecond; ; timeout *= 3 {
		e, err := rt.Evaluate(t.Context(), graceHead+code, runtime.EvaluateOptions{Module: true, Timeout: timeout, Grace: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Value) == `{"begun":true}` || timeout > 30*time.Second {
			return e
		}
	}
}

// A program reports after its timeout, wherever it is.
func TestGrace(t *testing.T) {
	for _, launcher := range harness.SomeLaunchers() {
		rt := harness.Create(t, runtime.Options{Launcher: launcher, MaxConcurrentRuns: 4})
		var all sync.WaitGroup
		for _, p := range harness.Some(places) {
			all.Go(func() {
				e := interrupted(t, rt, p.code)
				if string(e.Value) != `{"begun":true}` || e.Cause != runtime.CauseTimeout || e.Error == nil || e.Error.Name != "TimeoutError" {
					t.Errorf("%v: %s: %s, %v, cause %q", launcher, p.name, e.Value, e.Error, e.Cause)
				}
			})
		}
		all.Wait()
	}
}

// A program that breaks the mechanism loses its report, and is killed when the grace period ends.
func TestGraceHostile(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	var all sync.WaitGroup
	for name, code := range map[string]string{
		"a report without end":          `globalThis.__interrupted = () => { for (;;); }; for (;;);`,
		"no report":                     `for (;;);`,
		"no function":                   `globalThis.__interrupted = 5; for (;;);`,
		"a report that throws":          `globalThis.__interrupted = () => { throw 1 }; for (;;);`,
		"a report without JSON":         `globalThis.__interrupted = () => 1n; for (;;);`,
		"a report that is too large":    `globalThis.__interrupted = () => 'x'.repeat(2 << 20); for (;;);`,
		"a promise that waits":          `globalThis.__interrupted = () => new Promise(() => {}); for (;;);`,
		"a getter without end":          `Object.defineProperty(globalThis, '__interrupted', { get() { for (;;); } }); for (;;);`,
		"its own handler":               `globalThis.__interrupted = () => 1; process.on('SIGINT', () => {}); process.on('SIGURG', () => {}); for (;;);`,
		"a closed channel":              `(await import('node:fs')).closeSync(3); globalThis.__interrupted = () => 1; for (;;);`,
		"a report after killing":        `globalThis.__interrupted = () => process.kill(process.pid, 'SIGTERM'); for (;;);`,
		"a process that ignores SIGURG": `const { spawnSync } = await import('node:child_process'); spawnSync('sleep', ['1000']);`,
	} {
		all.Go(func() {
			began := time.Now()
			e, err := rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{Module: true, Timeout: 300 * time.Millisecond, Grace: 300 * time.Millisecond})
			if err != nil || e.Cause != runtime.CauseTimeout || e.Error == nil || e.Error.Name != "TimeoutError" {
				t.Errorf("%s: %+v, %v", name, e, err)
				return
			}
			if e.Value != nil && name != "its own handler" {
				t.Errorf("%s: it has reported %.100s", name, e.Value)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
	all.Wait()
	harness.CheckNoRuns(t)
}

// Grace changes nothing for programs that end in time.
func TestGraceUnused(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, code := range []string{
		`console.log(1); globalThis.__evaluated([process.listenerCount('SIGINT')])`,
		`setImmediate(() => { console.log('immediate'); setTimeout(() => console.log('timer'), 1) }); process.nextTick(() => console.log('tick'))`,
		`let n = 0; const i = setInterval(() => { if (++n === 3) { clearInterval(i); globalThis.__evaluated(n); } }, 1)`,
		`setTimeout(() => { throw new TypeError('in a timer') }, 1); setTimeout(() => console.log('after'), 50)`,
		`setImmediate(() => { throw new TypeError('in an immediate') })`,
		`process.on('uncaughtException', (err) => console.log('caught', err)); setTimeout(() => { throw 1 }, 1); setTimeout(() => console.log('after'), 2)`,
		`process.on('uncaughtException', (err) => console.log('caught', err)); setImmediate(() => { throw 1 }); setImmediate(() => console.log('after'))`,
		`await Promise.reject(new RangeError('rejected'))`,
		`process.exit(4)`,
		`await new Promise(() => {})`,
		`const { AsyncLocalStorage } = await import('node:async_hooks'); const s = new AsyncLocalStorage(); s.run(7, () => setTimeout(() => { globalThis.__evaluated(s.getStore()) }, 1))`,
		`for await (const _ of (await import('node:timers/promises')).setInterval(1)) break; globalThis.__evaluated('done')`,
	} {
		var got [2]*runtime.Evaluation
		for i, grace := range []time.Duration{0, time.Second} {
			e, err := rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{Module: true, Grace: grace})
			if err != nil {
				t.Fatal(err)
			}
			got[i] = e
		}
		ignored := cmpopts.IgnoreFields(runtime.Evaluation{}, "Duration", "Usage")
		if diff := cmp.Diff(got[0], got[1], ignored, cmpopts.IgnoreFields(runtime.Log{}, "At")); diff != "" {
			t.Errorf("%s: without and with grace: %s", code, diff)
		}
	}
}

func TestGraceOptions(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, grace := range []time.Duration{-1, 11 * time.Second} {
		_, err := rt.Evaluate(t.Context(), "1", runtime.EvaluateOptions{Grace: grace})
		if limit, ok := errors.AsType[*runtime.LimitError](err); !ok || limit.Limit != "Grace" {
			t.Errorf("%v: %v", grace, err)
		}
	}
}

// A module is passed unchanged.
func TestModule(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct{ code, result, failure, stack string }{
		{code: `globalThis.__evaluated(5); 6`, result: `5`},
		{code: `1 + 1`},
		{code: "const a = 1;\nthrow new Error('no')", failure: "Error: no", stack: "at file:///workspace/snippet.mjs:2:7"},
		{code: "const a: number = 1", failure: "SyntaxError: Missing initializer in const declaration"},
		{code: "```js\n1\n```", failure: "TypeError: \"\" is not a function"},
	} {
		e, err := rt.Evaluate(t.Context(), tc.code, runtime.EvaluateOptions{Module: true})
		if err != nil || string(e.Value) != tc.result {
			t.Errorf("%s: %s, %v", tc.code, e.Value, err)
		}
		failure, stack := "", ""
		if e.Error != nil {
			failure, stack = e.Error.Error(), e.Error.Stack
		}
		if failure != tc.failure || !strings.Contains(stack, tc.stack) {
			t.Errorf("%s: %s\n%s", tc.code, failure, stack)
		}
	}
}
