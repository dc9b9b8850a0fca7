package evaluate

import (
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// newContext creates a context that is closed when the test ends.
func newContext(t testing.TB, rt *runtime.NodeRuntime, o runtime.ContextOptions) *runtime.Context {
	t.Helper()
	c, err := rt.NewContext(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func cell(t testing.TB, c *runtime.Context, code string, o runtime.EvaluateOptions) *runtime.Evaluation {
	t.Helper()
	e, err := c.Evaluate(t.Context(), code, o)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return e
}

// want checks a cell's value.
func want(t testing.TB, c *runtime.Context, code, value string) {
	t.Helper()
	if e := cell(t, c, code, runtime.EvaluateOptions{}); string(e.Value) != value || e.Error != nil || e.Cause != "" {
		t.Errorf("%s: %s, %v %q %v; want %s", code, e.Value, e.Error, e.Cause, e.Logs, value)
	}
}

// wantError checks the beginning of a cell's error.
func wantError(t testing.TB, c *runtime.Context, code, text string) *runtime.GuestError {
	t.Helper()
	e := cell(t, c, code, runtime.EvaluateOptions{})
	if e.Error == nil || !strings.HasPrefix(e.Error.Error(), text) {
		t.Fatalf("%s: %s, %v; want %s", code, e.Value, e.Error, text)
	}
	return e.Error
}

// Later cells see the declarations of a cell, whatever their form.
func TestContextKeepsDeclarations(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings(), Files: map[string][]byte{
		"/workspace/lib/own.mjs":                    []byte("export const own = 'mine'; export default import.meta.url"),
		"/workspace/node_modules/pack/package.json": []byte(`{"name": "pack", "exports": "./index.js"}`),
		"/workspace/node_modules/pack/index.js":     []byte("module.exports = { packed: 7 }"),
		"/workspace/data.json":                      []byte(`{"a": 1}`),
	}})
	c := newContext(t, rt, runtime.ContextOptions{Globals: map[string]any{"given": []int{1, 2}}})
	for _, step := range []struct{ code, want string }{
		{`const a = 1; let b = 2; var d = 3`, ``},
		{`function f(x) { return a + x }; class K { static s = 4 }; async function* g() { yield 5 }`, ``},
		{`const { x, y: [z, ...rest] } = { x: 6, y: [7, 8, 9] }`, ``},
		{`[a, b, d, f(1), K.s, (await g().next()).value, x, z, rest]`, `[1,2,3,2,4,5,6,7,[8,9]]`},
		{`const a = 10; let b = 20; class K { static s = 40 }; function f() { return 'f' }; [a, b, K.s, f()]`, `[10,20,40,"f"]`},
		{`b += 1`, `21`},
		{`b`, `21`},
		{`const later = await new Promise(done => setTimeout(done, 5, 'came')); later.length`, `4`},
		{`later`, `"came"`},
		{`for await (const v of [Promise.resolve(1)]) b += v; b`, `22`},
		{`Promise.resolve([a])`, `[10]`},
		{`given.push(3); given`, `[1,2,3]`},
		{`given`, `[1,2,3]`},
		{`globalThis.put = 1; this === globalThis`, `true`},
		{`put`, `1`},
		{`if (a) { const inner = 1 }; typeof inner`, `"undefined"`},
		{`api.users.get(3).name`, `"user 3"`},
		{`const u = await api.users.get.async(4); u.id`, `4`},
		{`u.name`, `"user 4"`},
		{`(await import('node:path')).basename('/a/b')`, `"b"`},
		{`(await import('./lib/own.mjs')).default`, `"file:///workspace/lib/own.mjs"`},
		{`(await import('pack')).default.packed`, `7`},
		{`(await import('./data.json', { with: { type: 'json' } })).default.a`, `1`},
		{`await eval("import('./lib/own.mjs')").then(m => m.own)`, `"mine"`},
		{`[import.meta.url, import.meta.dirname, typeof import.meta.resolve]`, `["file:///workspace/context.mjs","/workspace","function"]`},
		{`import.meta.resolve('pack')`, `"file:///workspace/node_modules/pack/index.js"`},
		{`require('pack').packed + require('node:path').sep`, `"7/"`},
		{`undefined`, ``},
		{`null`, `null`},
		{`new Uint8Array([1, 2])`, `"AQI="`},
		{`[typeof module, typeof __return, typeof __evaluated]`, `["object","undefined","undefined"]`},
	} {
		want(t, c, step.code, step.want)
	}
	other := newContext(t, rt, runtime.ContextOptions{})
	want(t, other, `[typeof a, typeof given, typeof put]`, `["undefined","undefined","undefined"]`)
}

// import.meta is defined from the first cell on.
func TestContextImportMeta(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for range 5 {
		want(t, newContext(t, rt, runtime.ContextOptions{Cwd: "/tmp"}), `import.meta.url`, `"file:///tmp/context.mjs"`)
	}
}

// What models write works in a cell, too.
func TestContextNormalizes(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	for _, step := range []struct{ code, want string }{
		{"```ts\ninterface A { a: number }\nconst one: A = { a: 1 };\none\n```", `{"a":1}`},
		{`one.a as number`, `1`},
		{`{ b: 2 }`, `{"b":2}`},
		{"import { join, sep as slash } from 'node:path'\nimport * as os from 'node:os'\nimport fs from 'node:fs'\njoin('a', 'b') + slash", `"a/b/"`},
		{`[join('c'), typeof os.cpus, typeof fs.readFileSync]`, `["c","function","function"]`},
		{`enum Color { Red = 3 }; Color.Red`, `3`},
		{`Color.Red`, `3`},
	} {
		want(t, c, step.code, step.want)
	}
}

// A static import of a missing name fails before the cell does anything.
func TestContextMissingExport(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: map[string][]byte{"/workspace/own.mjs": []byte("export const own = undefined")}})
	c := newContext(t, rt, runtime.ContextOptions{})
	err := wantError(t, c, "globalThis.ran = 1\nconst kept = 2\nimport { sep, nope } from 'node:path'\nnope", "SyntaxError: The requested module 'node:path' does not provide an export named 'nope'")
	if !strings.Contains(err.Stack, "at cell-1.js:3:1") || !strings.Contains(err.Frame, "> 3 | import { sep, nope }") {
		t.Errorf("stack:\n%s\nframe:\n%s", err.Stack, err.Frame)
	}
	wantError(t, c, `import own from './own.mjs'`, "SyntaxError: The requested module './own.mjs' does not provide an export named 'default'")
	want(t, c, "import { own } from './own.mjs'\n[own, typeof ran]", `[null,"undefined"]`)
}

// A cell that fails keeps earlier declarations, and its own until then.
func TestContextErrors(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{Bindings: bindings()}), runtime.ContextOptions{})
	want(t, c, "const kept = 1;\n\nfunction thrower() {\n  throw new RangeError('no');\n}", ``)
	err := wantError(t, c, "const early = 2; var sooner = 3\nthrow new TypeError('stop')\nconst never = 4", "TypeError: stop")
	if !strings.Contains(err.Stack, "at cell-2.js:2:7") || !strings.Contains(err.Frame, "> 2 | throw new TypeError('stop')") {
		t.Errorf("%s\n%s", err.Stack, err.Frame)
	}
	want(t, c, `[kept, early, sooner]`, `[1,2,3]`)
	wantError(t, c, `never`, "ReferenceError: never is not defined")

	err = wantError(t, c, "1;\n\nthrower()", "RangeError: no")
	if !strings.Contains(err.Stack, "at thrower (cell-1.js:4:9)\n    at cell-5.js:3:1") || !strings.Contains(err.Frame, "> 4 |   throw new RangeError('no');") {
		t.Errorf("%s\n%s", err.Stack, err.Frame)
	}
	err = wantError(t, c, "await null;\nawait (async () => { await null; nosuch })()", "ReferenceError: nosuch is not defined")
	if !strings.Contains(err.Stack, "cell-6.js:2:34") {
		t.Errorf("after an await:\n%s", err.Stack)
	}
	err = wantError(t, c, "const b = = 2;", "SyntaxError: ")
	if !strings.Contains(err.Stack, "cell-7.js:1:11") || !strings.Contains(err.Frame, "> 1 | const b = = 2;") {
		t.Errorf("%s\n%s", err.Stack, err.Frame)
	}
	err = wantError(t, c, "1;\nawait fail.async()", "Error: it failed")
	if !strings.Contains(err.Stack, "at async cell-8.js:2:1") || !strings.Contains(err.Frame, "> 2 | await fail.async()") {
		t.Errorf("%s\n%s", err.Stack, err.Frame)
	}
	for code, text := range map[string]string{
		`Promise.reject(new Error('later'))`:       "Error: later",
		`await Promise.reject(new Error('later'))`: "Error: later",
		`throw undefined`:                          "undefined",
		`throw { a: 1 }`:                           "{ a: 1 }",
		`({ toJSON() { throw new Error('j') } })`:  "Error: j",
		`return 1n`: "TypeError: value: a BigInt cannot be encoded as JSON",
		`const circle = {}; export default circle.a = circle`: "TypeError: value.a: it is value again",
		`import('nosuch')`:            "Error: Cannot find package 'nosuch'",
		`api.users.get(-1)`:           "Error: there is no such user",
		`await new Promise(() => {})`: "UnsettledError: the code awaits a promise that nothing settles",
		`Promise.reject(new Error('nobody')); await new Promise(r => setTimeout(r, 1000))`:           "Error: nobody",
		`setTimeout(() => { throw new Error('tick') }); await new Promise(r => setTimeout(r, 1000))`: "Error: tick",
	} {
		err := wantError(t, c, code, text)
		for _, own := range []string{"/usr/libexec", "node:", "__cell"} {
			if strings.Contains(err.Stack, own) {
				t.Errorf("%s: the stack has frames outside the cell:\n%s", code, err.Stack)
			}
		}
	}
	want(t, c, `[kept, early, sooner]`, `[1,2,3]`)
}

// An error about a value names the place in the value, if there is only one.
func TestContextValuePlaces(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{Bindings: bindings()}), runtime.ContextOptions{})
	for i, tc := range []struct{ code, place, frame string }{
		{"let a;\n  'x'.repeat(2000)", ":2:3", "> 2 |   'x'.repeat(2000)\n    |   ^"},
		{"const circle = {}; circle.a = circle;\r\nexport default circle", ":2:16", "> 2 | export default circle"},
		{"/* \u2028 */ 'x'.repeat(2000)", ":2:5", "> 2 |"},
		{"const big: string = 'x'.repeat(2000);\n\nbig as string", ":3:1", "> 3 | big as string"},
		{"await (Promise.resolve('x'.repeat(2000)))", ":1:1", "> 1 | await (Promise"},
		{"1;\n({ toJSON() { throw new Error('j') } })", ":2:21", "> 2 |"},
		{"if (globalThis.nosuch) 'y'.repeat(2000); else 'x'.repeat(2000)", ".js", ""},
	} {
		e := cell(t, c, tc.code, runtime.EvaluateOptions{MaxOutput: 1000})
		if e.Error == nil {
			t.Fatalf("%s: %s", tc.code, e.Value)
		}
		if at := fmt.Sprintf("cell-%d.js%s", i+1, strings.TrimPrefix(tc.place, ".js")); !strings.Contains(e.Error.Stack, at) || !strings.Contains(e.Error.Frame, tc.frame) || tc.frame == "" && e.Error.Frame != "" {
			t.Errorf("%s: want %s\n%s\n%s", tc.code, at, e.Error.Stack, e.Error.Frame)
		}
		if strings.Contains(e.Error.Stack, "/usr/libexec") || strings.Contains(e.Error.Stack, ":0:0") {
			t.Errorf("%s: the stack has frames outside the cell:\n%s", tc.code, e.Error.Stack)
		}
	}
}
