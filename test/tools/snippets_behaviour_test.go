package tools

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime/snippets"
	"gaol/test/harness"
)

// behaviour is the expected output of a snippet. Empty facts stand for {}.
type behaviour struct {
	name, source string
	logs         []string
	facts        string
	errors       []string
}

var behaviours = []behaviour{
	{"console", `
		console.log('a', 1, true, null, undefined, NaN, { b: [1, 'x'] });
		console.info('i'); console.debug('d'); console.warn('w', { c: 1 }); console.error('e');`,
		[]string{`[log] a 1 true null undefined NaN {"b":[1,"x"]}`, "[log] i", "[log] d", `[warn] w {"c":1}`, "[error] e"}, "", nil},
	{"values", `
		const loop: any = { n: 1n }; loop.self = loop;
		class Point { x = 1; get y() { return 2 } }
		console.log(loop, new Map([['k', new Set([1])]]), new Map([[1, 2]]), new Error('m'), { e: new TypeError('n') });
		console.log(10n, Symbol('s'), function f() {}, /x/g, new Date(0), new Uint8Array([1, 2]), new Point());`,
		[]string{
			`[log] {"n":"1n","self":"[circular]"} {"k":[1]} [[1,2]] Error: m {"e":"TypeError: n"}`,
			`[log] 10n Symbol(s) [function f] /x/g "1970-01-01T00:00:00.000Z" [1,2] {"x":1}`,
		}, "", nil},
	{"values that throw", `
		console.log({ get a() { throw new Error('getter') } }, new Proxy({}, { ownKeys() { throw new Error('trap') } }), { toJSON() { throw 1 } });`,
		[]string{"[log] [no text: getter] [no text: trap] [no text: undefined]"}, "", nil},
	{"formats are text", `console.log('%s %d', 1)`, []string{"[log] %s %d 1"}, "", nil},
	{"lines", `console.log('a\nb'); console.log(''); console.log()`, []string{"[log] a\nb", "[log] ", "[log] "}, "", nil},
	{"exports", `export const n = 1; export const o = { a: new Map([['b', 1]]) }; export let u; export function f() {} export default class C {}`, nil,
		`{"default":"[function C]","f":"[function f]","n":1,"o":{"a":{"b":1}}}`, nil},
	{"types", `enum E { A = 5 } interface I { x: number } export const e: E = E.A; export const i = { x: 1 } satisfies I;`, nil, `{"e":5,"i":{"x":1}}`, nil},
	{"waits for timers", `setTimeout(() => console.log('late'), 20); console.log('early')`, []string{"[log] early", "[log] late"}, "", nil},
	{"a throw", "export const a = 1;\nconsole.log('before');\nfunction f(): never {\n  throw new TypeError('no');\n}\nf();\nexport const b = 2;",
		[]string{"[log] before"}, `{"a":1}`, []string{"TypeError: no\n    at f (src/main.ts:4:9)\n    at src/main.ts:6:1"}},
	{"a throw in a timer", "export const a = 1;\nsetTimeout(() => {\n  throw new Error('late');\n}, 1);\nsetTimeout(() => console.log('never'), 1000);",
		nil, `{"a":1}`, []string{"Error: late\n    at Timeout._onTimeout (src/main.ts:3:9)"}},
	{"a rejection", "export const a = 1;\nPromise.reject(new RangeError('r'));", nil, `{"a":1}`, []string{"RangeError: r\n    at src/main.ts:2:16"}},
	{"codes and causes", "throw Object.assign(new Error('outer', { cause: Object.assign(new Error('inner'), { code: 'E_IN' }) }), { code: 'E_OUT' })",
		nil, "", []string{"Error: outer [code: E_OUT]\n    at src/main.ts:1:21\nCause: Error: inner [code: E_IN]\n    at src/main.ts:1:63"}},
	{"a string", `throw 'text'`, nil, "", []string{"text"}},
	{"an object", `throw { a: 1 }`, nil, "", []string{"{ a: 1 }"}},
	{"errors of Node", `import { readFileSync } from 'node:fs'; readFileSync('/workspace/none')`, nil, "",
		[]string{"Error: ENOENT: no such file or directory, open '/workspace/none' [code: ENOENT]\n    at src/main.ts:1:41"}},
	{"an await that nothing settles", `export const a = 1; await new Promise(() => {});`, nil, `{"a":1}`, []string{"the snippet awaits a promise that nothing settles"}},
	{"exit", `export const a = 1; console.log('x'); process.exit(3);`, []string{"[log] x"}, `{"a":1}`, []string{"the snippet ended its process with exit code 3"}},
	{"exit without an error", `export const a = 1; console.log('x'); process.exit();`, []string{"[log] x"}, `{"a":1}`, nil},
	{"a handled error", `process.on('uncaughtException', (err) => console.log('handled', err)); setTimeout(() => { throw new Error('e') }, 1)`, []string{"[log] handled Error: e"}, "", nil},
	{"a signal", `console.log('x'); process.kill(process.pid, 'SIGKILL'); for (;;);`, []string{"[log] x"}, "", []string{"the snippet was ended by SIGKILL"}},
	{"abort", `console.log('x'); process.kill(process.pid, 'SIGTERM'); for (;;);`, []string{"[log] x"}, "", []string{"the snippet was ended by SIGTERM"}},
	{"memory", `console.log('x'); const a = []; for (;;) a.push(new Array(1000).fill(1.5));`, []string{"[log] x"}, "", []string{"out of memory: a snippet has 32 MiB of heap, and 128 MiB in all"}},
	{"memory outside of the heap", `console.log('x'); const a = []; for (;;) a.push(Buffer.alloc(8 << 20, 1));`, []string{"[log] x"}, "", []string{"out of memory: a snippet has 32 MiB of heap, and 128 MiB in all"}},
	{"no network", `await fetch('http://192.0.2.1/').catch((err) => console.log(err.cause.code))`, []string{"[log] EACCES"}, "", nil},
	{"a stack in a message", "console.log(new Error('x').stack)", []string{"[log] Error: x\n    at src/main.ts:1:13"}, "", nil},
}

func TestBehaviour(t *testing.T) {
	r := newRunner(t, snippets.Options{})
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			out := run(t, r, snippets.Input{Source: b.source, Timeout: snippets.MaxTimeout})
			b.check(t, out)
		})
	}
}

func (b behaviour) check(t *testing.T, out *snippets.Output) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, b.logs...), out.Logs); diff != "" {
		t.Errorf("logs: %s", diff)
	}
	if diff := cmp.Diff(append([]string{}, b.errors...), out.Errors); diff != "" {
		t.Errorf("errors: %s", diff)
	}
	want := b.facts
	if want == "" {
		want = "{}"
	}
	if string(out.Facts) != want || string(out.Derived) != "{}" {
		t.Errorf("facts %s and derived %s, want %s", out.Facts, out.Derived, want)
	}
	if out.TimedOut || out.DurationMs <= 0 {
		t.Errorf("timed out: %v, after %v ms", out.TimedOut, out.DurationMs)
	}
}

// Several files import each other as .js.
func TestFiles(t *testing.T) {
	r := newRunner(t, snippets.Options{NodeModules: packages})
	main := "import { twice } from './lib/math.js';\nimport greeter, { greet } from 'legacy-greeter';\nexport const n: number = twice(4);\nexport const g = [greet('x'), greeter.calls];\ntwice(-1);"
	lib := "export function twice(n: number) {\n  if (n < 0) throw new RangeError('negative');\n  return 2 * n;\n}"
	out := run(t, r, snippets.Input{Files: []snippets.File{{Path: "src/lib/math.ts", Source: lib}, {Path: "src/main.ts", Source: main}}})
	if want := `{"g":["hello, x",0],"n":8}`; string(out.Facts) != want {
		t.Errorf("facts %s, want %s", out.Facts, want)
	}
	want := []string{"RangeError: negative\n    at twice (src/lib/math.ts:2:20)\n    at src/main.ts:5:1"}
	if diff := cmp.Diff(want, out.Errors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]snippets.Problem{{Path: "src/lib/math.ts", Line: 2, Column: 20, Message: "RangeError: negative"}}, out.Problems); diff != "" {
		t.Error(diff)
	}
}

// Errors of the source have positions, and nothing runs.
func TestSourceErrors(t *testing.T) {
	r := newRunner(t, snippets.Options{NodeModules: packages})
	for _, tc := range []struct{ source, want string }{
		{"console.log(1);\nlet x = ;", `src/main.ts:2:9 — Unexpected ";"`},
		{"console.log(1);\nimport './none.js'", `src/main.ts:2:8 — `},
		{"/* 🙂 */ import { a } from 'nosuch'; a()", `src/main.ts:1:28 — cannot find package "nosuch"`},
	} {
		out := run(t, r, snippets.Input{Source: tc.source})
		if len(out.Errors) != 1 || !strings.HasPrefix(out.Errors[0], tc.want) || len(out.Problems) != 1 || len(out.Logs) > 0 {
			t.Errorf("%s: %q, problems %+v", tc.source, out.Errors, out.Problems)
		}
	}
}

// Output is bounded in lines and bytes, and the last line reports it.
func TestOutputBounds(t *testing.T) {
	r := newRunner(t, snippets.Options{})
	for name, source := range map[string]string{
		"lines":      `for (let i = 0; i < 5000; i++) console.log(i)`,
		"bytes":      `for (let i = 0; i < 500; i++) console.log('x'.repeat(2000))`,
		"a line":     `console.log('é'.repeat(1 << 20)); console.log('y')`,
		"raw":        `for (let i = 0; i < 5000; i++) process.stdout.write(i + '\n')`,
		"no newline": `process.stderr.write('x'.repeat(3 << 20))`,
		"50 MB":      `for (let i = 0; i < 50; i++) console.log('x'.repeat(1 << 20))`,
	} {
		streamed := 0
		out := run(t, r, snippets.Input{Source: source, Timeout: snippets.MaxTimeout, OnLog: func(string) { streamed++ }})
		if last := out.Logs[len(out.Logs)-1]; !strings.Contains(last, "further output is left out") || len(out.Errors) > 0 {
			t.Errorf("%s: %d lines, the last one %.100q, errors %q", name, len(out.Logs), last, out.Errors)
		}
		if streamed != len(out.Logs) {
			t.Errorf("%s: %d lines were streamed of %d", name, streamed, len(out.Logs))
		}
	}
}

// Node keeps output beyond the pipe's capacity in memory, which is limited.
func TestOutputFlood(t *testing.T) {
	out := run(t, newRunner(t, snippets.Options{}), snippets.Input{Source: `for (;;) process.stdout.write('x'.repeat(1 << 16) + '\n')`})
	if len(out.Errors) != 1 {
		t.Errorf("errors %q", out.Errors)
	}
}

// A snippet's leftovers are not visible to the next one.
func TestFresh(t *testing.T) {
	r := newRunner(t, snippets.Options{})
	for range harness.Fewer(6, 3) {
		out := run(t, r, snippets.Input{Source: `
			import { existsSync, writeFileSync } from 'node:fs';
			console.log(existsSync('/tmp/left'), existsSync('left'), globalThis.left);
			writeFileSync('/tmp/left', ''); writeFileSync('left', ''); globalThis.left = 1;`})
		if diff := cmp.Diff([]string{"[log] false false undefined"}, out.Logs); diff != "" {
			t.Error(diff, out.Errors)
		}
	}
}

// A shared sandbox is read-only.
func TestShared(t *testing.T) {
	r := newRunner(t, snippets.Options{Shared: true, NodeModules: packages})
	source := `
		import { writeFileSync } from 'node:fs';
		import { greet } from 'legacy-greeter';
		console.log(greet('x'), globalThis.left);
		globalThis.left = 1;
		for (const file of ['/tmp/left', 'left', '/packages/left', '/dev/shm/left'])
			try { writeFileSync(file, ''); console.log('written', file) } catch (err) { console.log(err.code) }`
	for range 2 {
		out := run(t, r, snippets.Input{Source: source})
		if diff := cmp.Diff([]string{"[log] hello, x undefined", "[log] EROFS", "[log] EROFS", "[log] EROFS", "[log] EROFS"}, out.Logs); diff != "" {
			t.Error(diff, out.Errors)
		}
	}
}

// A timeout is rounded to the nearest allowed one.
func TestTimeoutIsClamped(t *testing.T) {
	r := newRunner(t, snippets.Options{})
	for given, want := range map[time.Duration]string{1: "100ms", -5: "100ms", 250 * time.Millisecond: "250ms"} {
		out := run(t, r, snippets.Input{Source: `for (;;);`, Timeout: given})
		if diff := cmp.Diff([]string{"wall-clock budget of " + want + " elapsed"}, out.Errors); diff != "" || !out.TimedOut {
			t.Errorf("%v: %s, %v", given, diff, out.TimedOut)
		}
	}
}
