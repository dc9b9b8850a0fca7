package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// Code as models write it evaluates as in real Node. internal/snippet tests many more
// shapes.
func TestEvaluate(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	for _, tc := range []struct{ name, code, want string }{
		{"an expression", `1 + 1`, `2`},
		{"a lone object", `{ a: 1 }`, `{"a":1}`},
		{"statements", "const a = [1, 2]\nconst b = a.map(n => n * 2)\nb", `[2,4]`},
		{"a return", `const a = 1; return a + 1`, `2`},
		{"an async arrow function", `async () => { await null; return 'x' }`, `"x"`},
		{"a promise", `Promise.resolve([1])`, `[1]`},
		{"fenced TypeScript", "Here it is:\n\n```ts\ninterface A { a: number }\nconst a: A = { a: 1 };\na as A\n```\nDone.", `{"a":1}`},
		{"JSX", "const React = { createElement: (type, props, ...children) => ({ type, props, children }) };\n<p id=\"a\">x</p>", `{"type":"p","props":{"id":"a"},"children":["x"]}`},
		{"imports", "import { basename } from 'node:path';\nbasename('/a/b')", `"b"`},
		{"dynamic import", `(await import('node:path')).basename('/a/c')`, `"c"`},
		{"no value", `const a = 1`, ``},
		{"undefined", `undefined`, ``},
		{"null", `null`, `null`},
		{"NaN", `NaN`, `null`},
		{"bytes and dates", `({ b: new Uint8Array([1, 2]), d: new Date(0) })`, `{"b":"AQI=","d":"1970-01-01T00:00:00.000Z"}`},
		{"host functions", `const u = await api.users.get(3); api.add(u.id, 4)`, `7`},
		{"import.meta", `import.meta.url`, `"file:///workspace/snippet.mjs"`},
		{"later output", `setTimeout(() => console.log('later'), 5); 'now'`, `"now"`},
	} {
		e := harness.Evaluate(t, rt, tc.code, runtime.EvaluateOptions{})
		if string(e.Value) != tc.want || e.Error != nil || e.Cause != "" {
			t.Errorf("%s: %s, %v %q %v; want %s", tc.name, e.Value, e.Error, e.Cause, e.Logs, tc.want)
		}
	}
}

// Errors name the places that the model knows.
func TestEvaluateErrors(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	for _, tc := range []struct {
		name, code string
		want       string // "Name: message"
		stack      string // a part of it
		frame      string // a part of it
		result     string
		cause      runtime.Cause
		timeout    time.Duration
		heap       int64
	}{
		{name: "a thrown error", code: "const a = 1;\n\nfunction f() { throw new RangeError('no') }\nf()", want: "RangeError: no", stack: "at f (snippet.mjs:3:22)\n    at snippet.mjs:4:1", frame: "> 3 | function f() { throw new RangeError('no') }"},
		{name: "in fenced TypeScript", code: "Look:\n```ts\ninterface A {\n  a: number;\n}\n\nconst a: A = null!;\na.a\n```", want: "TypeError: Cannot read properties of null (reading 'a')", stack: "snippet.mjs:8:3", frame: "> 8 | a.a"},
		{name: "after an await", code: "await null;\nasync function g() { await null; nosuch }\nawait g()", want: "ReferenceError: nosuch is not defined", stack: "at g (snippet.mjs:2:34)\n    at async snippet.mjs:3:1", frame: "> 2 |"},
		{name: "a rejected promise", code: `Promise.reject(new Error('later'))`, want: "Error: later"},
		{name: "an unhandled one", code: "Promise.reject(new Error('nobody'));\n5", want: "Error: nobody", result: "5"},
		{name: "in a timer", code: "setTimeout(() => { throw new Error('tick') });\n5", want: "Error: tick", result: "5"},
		{name: "no error", code: `throw { a: 1 }`, want: "{ a: 1 }"},
		{name: "text", code: `throw 'text'`, want: "text"},
		{name: "an error of one's own", code: `class Odd extends Error { name = 'Odd' }; throw new Odd('o')`, want: "Odd: o"},
		{name: "a syntax error", code: "const a = 1;\nconst b = = 2;", want: "SyntaxError: ", stack: "snippet.mjs:2:11", frame: "> 2 | const b = = 2;"},
		{name: "an export that is not there", code: "interface A {\n  a: number\n}\nconst x: A = { a: 1 }\nimport { nope } from 'fs'\nx.a + nope", want: "SyntaxError: The requested module 'fs' does not provide", stack: "named 'nope'\n    at snippet.mjs:5:10", frame: "> 5 | import { nope } from 'fs'\n    |          ^"},
		{name: "another one on the line of the value", code: `import x, { y } from 'fs'; typeof x + typeof y`, want: "SyntaxError: ", stack: "at snippet.mjs:1:13", frame: "> 1 | import x, { y } from 'fs'; typeof x + typeof y\n"},
		{name: "a regular expression", code: `/(/`, want: "SyntaxError: Invalid regular expression", stack: "at snippet.mjs:1:1", frame: "> 1 | /(/"},
		{name: "a group twice", code: "1;\n\t/(?<a>x)(?<a>y)/", want: "SyntaxError: Invalid regular expression", stack: "at snippet.mjs:2:2", frame: "> 2 |"},
		{name: "a name twice", code: `function f(){} var f = 1`, want: "SyntaxError: Identifier 'f' has", stack: "at snippet.mjs:1:20", frame: "> 1 | function f(){} var f = 1"},
		{name: "a pattern without a value", code: `let [a]; 1`, want: "SyntaxError: Missing init", stack: "at snippet.mjs:1:5", frame: "> 1 | let [a]; 1"},
		{name: "sloppy code", code: "total = 1;\nfunction f() { nosuch() }\nf()", want: "ReferenceError: nosuch is not defined", stack: "at f (snippet.mjs:2:16)\n    at eval (snippet.mjs:3:1)", frame: "> 2 | function f() { nosuch() }"},
		{name: "another module's syntax", code: "import fs from 'node:fs'\nfs.writeFileSync('/tmp/other.mjs', 'let a;\\nlet b = = 1')\nawait import('/tmp/other.mjs')", want: "SyntaxError: Unexpected token '='", stack: "at file:///tmp/other.mjs:2:9"},
		{name: "another module of its name", code: "import fs from 'node:fs'\nfs.mkdirSync('d')\nfs.writeFileSync('d/snippet.mjs', '\\nthrow 5..x.y')\nawait import('./d/snippet.mjs')", want: "TypeError: ", stack: "at file:///workspace/d/snippet.mjs:2:12"},
		{name: "a missing package", code: `import 'nosuch'`, want: "Error: Cannot find package 'nosuch'"},
		{name: "a host error", code: `api.users.get(-1)`, want: "Error: there is no such user", stack: "snippet.mjs:1:11"},
		{name: "a host error, later", code: "const a = 1;\nawait fail.async()", want: "Error: it failed", stack: "at async snippet.mjs:2:1", frame: "> 2 | await fail.async()"},
		{name: "a host error, in a function", code: "async function f() { return await fail.async() }\nawait f()", want: "Error: it failed", stack: "at async f (snippet.mjs:1:29)\n    at async snippet.mjs:2:1", frame: "> 1 |"},
		{name: "one of several host errors", code: "1;\nawait Promise.all([fail.async(), fail.async()])", want: "Error: it failed", stack: "at async snippet.mjs:2:1", frame: "> 2 |"},
		{name: "what JSON has not", code: "const n = 1n\nexport default n", want: "TypeError: value: a BigInt cannot be encoded as JSON"},
		{name: "a function", code: `const f = () => 1; return f`, want: "TypeError: value: a function cannot be encoded as JSON"},
		{name: "a circle", code: `const a = {}; a.a = a; return a`, want: "TypeError: value.a: it is value again"},
		{name: "a toJSON of all objects", code: `Object.prototype.toJSON = () => 5; throw new Error('x')`, want: "Error: x", stack: "snippet.mjs:1:42"},
		{name: "an exit", code: `process.exit(3)`, want: "ExitError: the code ended its process with exit code 3"},
		{name: "an exit without an error", code: `process.exit(0); 5`},
		{name: "nothing settles", code: `await new Promise(() => {})`, want: "UnsettledError: the code awaits a promise that nothing settles"},
		{name: "its time", code: `for (;;);`, want: "TimeoutError: the code took longer than 300ms", cause: runtime.CauseTimeout, timeout: 300 * time.Millisecond},
		{name: "its time, with a value", code: `setInterval(() => {}, 10); 7`, result: "7", want: "TimeoutError: the code took longer than ", cause: runtime.CauseTimeout, timeout: time.Second},
		{name: "its heap", code: `const a = []; for (;;) a.push({ a })`, heap: 32 << 20, want: "OutOfMemoryError: the code exceeded its memory limit: 32 MiB of heap", cause: runtime.CauseMemory},
		{name: "a signal", code: `process.kill(process.pid, 'SIGSEGV'); await new Promise(() => setInterval(() => {}))`, want: "SignalError: the code was ended by SIGSEGV", cause: runtime.CauseSignal},
	} {
		var e *runtime.Evaluation
		harness.InTime(tc.timeout, func(limit time.Duration) bool {
			e = harness.Evaluate(t, rt, tc.code, runtime.EvaluateOptions{Timeout: limit, Heap: tc.heap})
			return string(e.Value) == tc.result
		})
		got := ""
		if e.Error != nil {
			got = e.Error.Error()
		} else {
			e.Error = &runtime.GuestError{}
		}
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) || !strings.Contains(e.Error.Stack, tc.stack) || !strings.Contains(e.Error.Frame, tc.frame) || string(e.Value) != tc.result || e.Cause != tc.cause {
			t.Errorf("%s: %s, result %s, cause %q, logs %v\n%s\n%s", tc.name, got, e.Value, e.Cause, e.Logs, e.Error.Stack, e.Error.Frame)
		}
		if strings.Contains(e.Error.Stack, "/usr/libexec") || strings.Contains(e.Error.Stack, "node:") || strings.Contains(e.Error.Stack, "__evaluated") {
			t.Errorf("%s: the stack has frames outside the snippet:\n%s", tc.name, e.Error.Stack)
		}
		if len(e.Logs) > 0 {
			t.Errorf("%s: logs %v", tc.name, e.Logs)
		}
	}
}

// Node calls a snippet's handlers as usual. An error that they handle is no error of the
// evaluation.
func TestEvaluateUncaughtHandlers(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const late = "setTimeout(() => { throw new Error('late') }, 1); setTimeout(() => { throw new Error('later') }, 20); 1"
	for _, tc := range []struct{ name, code, logs, want string }{
		{"one", `process.on('uncaughtException', e => console.log('A', e.message)); `, "A late,A later", ""},
		{"two", `for (const n of 'AB') process.on('uncaughtException', e => console.log(n, e.message)); `, "A late,B late,A later,B later", ""},
		{"one for once", `process.once('uncaughtException', e => console.log('A', e.message)); `, "A late", "Error: later"},
		{"one for once, before all others", `process.prependOnceListener('uncaughtException', e => console.log('A', e.message)); `, "A late", "Error: later"},
		{"one that removes them", `process.setUncaughtExceptionCaptureCallback(e => console.log('A', e.message)); `, "A late,A later", ""},
		{"none of ours shows", `console.log(process.listenerCount('uncaughtException')); `, "0", "Error: late"},
	} {
		e := harness.Evaluate(t, rt, tc.code+late, runtime.EvaluateOptions{})
		var logs []string
		for _, l := range e.Logs {
			logs = append(logs, l.Text)
		}
		got := ""
		if e.Error != nil {
			got = e.Error.Error()
		}
		if strings.Join(logs, ",") != tc.logs || got != tc.want || string(e.Value) != "1" {
			t.Errorf("%s: %q, %s, %q", tc.name, logs, e.Value, got)
		}
	}
}

// A value without JSON is an error, unless the snippet fails in another way until its end.
func TestEvaluateValueWithoutJSON(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for code, want := range map[string]string{
		"console.log('start')\nsetTimeout(() => console.log('later'), 10); export default 1n":                      "TypeError: value: a BigInt cannot be encoded as JSON",
		"console.log('start')\nsetTimeout(() => { console.log('later'); throw new Error('tick') }, 10)":            "Error: tick",
		"console.log('start')\nsetTimeout(() => { console.log('later'); process.exit(0) }, 10); export default 1n": "TypeError: value: a BigInt cannot be encoded as JSON",
	} {
		e := harness.Evaluate(t, rt, code, runtime.EvaluateOptions{})
		if e.Error == nil || !strings.HasPrefix(e.Error.Error(), want) || !strings.Contains(e.Error.Frame, "> 2 |") || len(e.Logs) != 2 || e.Value != nil {
			t.Errorf("%s: %s, %+v, %v", code, e.Value, e.Error, e.Logs)
		}
	}
}

// Lines arrive in order, with level and time, as Node prints them.
func TestEvaluateLogs(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	e := harness.Evaluate(t, rt, `
		console.log('a', { b: [1, new Map([[1, 2]])] }, 'c%d');
		console.info('%s is %d', 'x', 5); console.debug(); console.warn(new Error('seen').message); console.error('e');
		console.group('g'); console.log('in'); console.groupEnd();
		console.table([{ a: 1 }]); console.assert(1 === 2, 'sum'); console.count(); console.dir({ d: 1 });
		process.stdout.write('direct\nrest'); await new Promise(r => setTimeout(r, 50));
		console.trace('t'); 1`, runtime.EvaluateOptions{})
	var got []string
	last := time.Duration(0)
	for _, l := range e.Logs {
		text, _, _ := strings.Cut(l.Text, "\n")
		if l.Level != runtime.LogStdout { // which is not ordered with the lines of console
			got = append(got, fmt.Sprintf("%s %s", l.Level, text))
		}
		if l.At < last || l.At > e.Duration+time.Second {
			t.Errorf("%q is at %v, after %v", l.Text, l.At, last)
		}
		last = l.At
	}
	want := []string{
		"log a { b: [ 1, Map(1) { 1 => 2 } ] } c%d", "info x is 5", "debug ", "warn seen", "error e",
		"log g", "log   in", "log ┌─────────┬───┐", "warn Assertion failed: sum", "log default: 1", "log { d: 1 }", "error Trace: t",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var direct []string
	for _, l := range e.Logs {
		if l.Level == runtime.LogStdout {
			direct = append(direct, l.Text)
		}
	}
	if !cmp.Equal(direct, []string{"direct", "rest"}) {
		t.Errorf("written past console: %q", direct)
	}
}

// The number of lines, their length, results and calls are limited, and the result reports if
// a limit was reached.
func TestEvaluateLimits(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	e := harness.Evaluate(t, rt, `for (let i = 0; i < 200; i++) console.log(i); 1`, runtime.EvaluateOptions{})
	if len(e.Logs) != 100 || !e.Truncated.Logs || e.Logs[99].Text != "99" {
		t.Errorf("%d lines, truncated %v", len(e.Logs), e.Truncated.Logs)
	}
	e = harness.Evaluate(t, rt, `console.log('ü'.repeat(1000)); console.log('🎉'.repeat(1001)); console.log('x'.repeat(5_000_000)); process.stdout.write('y'.repeat(5_000_000)); 1`, runtime.EvaluateOptions{})
	if len(e.Logs) != 4 || e.Truncated.Logs || e.Error != nil {
		t.Fatalf("%d lines, %v", len(e.Logs), e.Error)
	}
	for i, want := range []string{strings.Repeat("ü", 1000), strings.Repeat("🎉", 1000) + "…", strings.Repeat("x", 1000) + "…", strings.Repeat("y", 1000) + "…"} {
		if !hasLog(e.Logs, want) {
			t.Errorf("line %d is not there: %.20s… of %d characters", i, e.Logs[i].Text, len([]rune(e.Logs[i].Text)))
		}
	}
	e = harness.Evaluate(t, rt, `'x'.repeat(2 ** 20)`, runtime.EvaluateOptions{})
	if e.Error == nil || e.Error.Message != "the value has 1048578 bytes of JSON, the limit is 1048576" || e.Value != nil {
		t.Errorf("a large value: %v", e.Error)
	}
	if e = harness.Evaluate(t, rt, `'x'.repeat(2 ** 20 - 2)`, runtime.EvaluateOptions{}); e.Error != nil || len(e.Value) != 1<<20 {
		t.Errorf("a value as large as may be: %v", e.Error)
	}
	e = harness.Evaluate(t, rt, `let n = 0; for (;;) { echo(n); n++ }`, runtime.EvaluateOptions{})
	if e.Error == nil || e.Error.Message != "more than 50 calls of host functions" || len(e.Calls) != 51 || e.Calls[50].Error == "" {
		t.Errorf("calls without end: %v, %d listed", e.Error, len(e.Calls))
	}
	e = harness.Evaluate(t, rt, `echo(1); echo(2)`, runtime.EvaluateOptions{MaxCalls: 1, MaxLogs: 1, MaxLogLength: 1, MaxOutput: 10})
	if e.Error == nil || len(e.Calls) != 2 {
		t.Errorf("one call: %v", e.Error)
	}
	for name, o := range map[string]runtime.EvaluateOptions{
		"MaxOutput": {MaxOutput: -1}, "more than Limits.Value": {MaxOutput: 17 << 20}, "MaxLogs": {MaxLogs: -1}, "MaxLogLength": {MaxLogLength: 2 << 20}, "MaxCalls": {MaxCalls: -5},
		"Heap": {Heap: 1 << 20}, "more than Memory leaves": {Heap: 1 << 30}, "Globals": {Globals: map[string]any{"a b": 1}},
	} {
		if _, err := rt.Evaluate(t.Context(), "1", o); err == nil {
			t.Errorf("%s: %+v was accepted", name, o)
		}
	}
}

func hasLog(logs []runtime.Log, text string) bool {
	for _, l := range logs {
		if l.Text == text {
			return true
		}
	}
	return false
}

// The globals of one evaluation override the runtime's bindings, and do not exist in the
// next.
func TestEvaluateGlobals(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	double := runtime.NewFunction("doubles", func(_ context.Context, n float64) (float64, error) { return 2 * n, nil })
	e := harness.Evaluate(t, rt, `[answer, typeof api, api.add, twice(4), items.at(-1), echo(1)]`, runtime.EvaluateOptions{Globals: map[string]any{
		"answer": "other", "api": map[string]any{"none": nil}, "twice": double, "items": []int{1, 2, 3},
	}})
	if string(e.Value) != `["other","object",null,8,3,[1]]` {
		t.Errorf("%s %v", e.Value, e.Error)
	}
	if e = harness.Evaluate(t, rt, `[answer, typeof twice]`, runtime.EvaluateOptions{}); string(e.Value) != `[42,"undefined"]` {
		t.Errorf("afterwards: %s %v", e.Value, e.Error)
	}
	large := map[string]any{"large": strings.Repeat("x", 10<<20)}
	if e = harness.Evaluate(t, rt, `large.length`, runtime.EvaluateOptions{Globals: large}); string(e.Value) != fmt.Sprint(10<<20) {
		t.Errorf("a large one: %s %v", e.Value, e.Error)
	}
}

// Known escapes from sandboxes inside a process lead only to the guest's own realm, which
// has nothing of the host. The host sees data.
func TestEvaluateClassicEscapes(t *testing.T) {
	var seen []string
	note := func(_ context.Context, args json.RawMessage) (any, error) {
		seen = append(seen, string(args))
		return map[string]any{"a": 1}, nil
	}
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{"note": note, "api": map[string]any{"note": note}, "data": map[string]any{"a": 1}}})
	const still = `((p) => [typeof p.getuid, p.getuid?.(), p.env.HOME])`
	guest := `["function",1000,"/home/node"]`
	if e := harness.Evaluate(t, rt, still+`(process)`, runtime.EvaluateOptions{}); e.Error != nil {
		t.Fatal(e.Error)
	} else {
		guest = string(e.Value)
	}
	for name, reach := range map[string]string{
		"constructor of a function": `note.constructor('return process')()`,
		"constructor of an answer":  `note().constructor.constructor('return process')()`,
		"constructor of data":       `data.constructor.constructor('return process')()`,
		"constructor of an error":   `(() => { try { note(1n) } catch (e) { return e.constructor.constructor('return process')() } })()`,
		"prepareStackTrace":         `(() => { Error.prepareStackTrace = (_, s) => s; const s = (() => { try { note(1n) } catch (e) { return e.stack } })(); return (Array.isArray(s) ? s[0].getFunction?.() ?? s[0].getThis?.() : s)?.constructor?.constructor?.('return process')?.() ?? process })()`,
		"the Promise prototype":     `await (async () => { const then = Promise.prototype.then; Promise.prototype.then = function (...a) { return then.apply(this, a) }; const p = note.async(1); Promise.prototype.then = then; return (await p).constructor.constructor('return process')() })()`,
		"caller":                    `(() => { try { return note.caller.constructor('return process')() } catch { return process } })()`,
		"a thenable as an answer":   `await { then(done) { done(process) } }`,
		"symbols":                   `(() => { const o = { [Symbol.toPrimitive]: () => 1, [Symbol.species]: Array }; note(o); return process })()`,
	} {
		e := harness.Evaluate(t, rt, still+`(`+reach+`)`, runtime.EvaluateOptions{})
		if string(e.Value) != guest {
			t.Errorf("%s: %s %v, want the guest's own %s", name, e.Value, e.Error, guest)
		}
	}
	seen = nil
	e := harness.Evaluate(t, rt, `
		Object.prototype.toJSON = undefined; delete Object.prototype.toJSON;
		note(new Proxy({ a: 1 }, { get: (o, k) => k === 'a' ? 'trapped' : o[k] }), { get x() { return 'got' } }, JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}'));
		Array.prototype.toJSON = () => 'spoilt'; try { note(1) } catch {} finally { delete Array.prototype.toJSON }
		({}).polluted ?? 'clean'`, runtime.EvaluateOptions{})
	if string(e.Value) != `"clean"` || len(seen) == 0 || seen[0] != `[{"a":"trapped"},{"x":"got"},{"__proto__":{"polluted":1},"constructor":2}]` {
		t.Errorf("%s %v; the host saw %q", e.Value, e.Error, seen)
	}
}
