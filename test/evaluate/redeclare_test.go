package evaluate

import (
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// declarations declare a name; probe is true if the name has that declaration's value.
var declarations = []struct{ name, code, probe string }{
	{"let", `let NAME = 1`, `NAME === 1`},
	{"const", `const NAME = 2`, `NAME === 2`},
	{"var", `var NAME = 3`, `NAME === 3`},
	{"function", `function NAME() { return [4, NAME.name] }`, `NAME()[0] === 4 && NAME.name === 'NAME'`},
	{"async function", `async function NAME() { return 5 }`, `(await NAME()) === 5`},
	{"generator", `function* NAME() { yield 6 }`, `NAME().next().value === 6`},
	{"class", `class NAME { static v = 7; static self() { return NAME.v } }`, `NAME.self() === 7`},
	{"import", `import NAME from 'node:path'`, `NAME.sep === '/'`},
	{"named import", `import { posix as NAME, sep as other_NAME } from 'node:path'`, `NAME.sep === '/' && other_NAME === '/'`},
	{"enum", `enum NAME { A = 8 }`, `NAME.A === 8 && NAME[8] === 'A'`},
	{"namespace", `namespace NAME { export const v = 9 }`, `NAME.v === 9`},
	{"pattern", `const { a: NAME, ...rest_NAME } = { a: 10, b: 11 }`, `NAME === 10 && rest_NAME.b === 11`},
	{"array", "let first_NAME = 0, [NAME = 12] = []", `NAME === 12`},
	{"loop", `for (var NAME of [13]);`, `NAME === 13`},
	{"nested var", `if (true) var { NAME } = { NAME: 14 }`, `NAME === 14`},
	{"export", `export const NAME = 15`, `NAME === 15`},
	{"exported function", `export function NAME() { return 16 }`, `NAME() === 16`},
	{"nothing", `let NAME`, `NAME === undefined`},
}

// A name can be declared again in all ways. Later cells and functions of earlier ones see the new value.
func TestContextRedeclare(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 512 << 20}})
	c := newContext(t, rt, runtime.ContextOptions{})
	for i, first := range declarations {
		for j, second := range declarations {
			name := fmt.Sprintf("n%d_%d", i, j)
			in := func(code string) string { return replaceName(code, name) }
			for _, step := range []struct{ code, want string }{
				{in(first.code + "\nfunction see_NAME() { return NAME }; globalThis.first_seen = typeof see_NAME"), ``},
				{in(first.probe), `true`},
				{in("1\n" + second.code), ``},
				{in(second.probe), `true`},
				{in("see_NAME() === NAME"), `true`},
				{in(first.code), ``},
				{in(first.probe), `true`},
			} {
				e := cell(t, c, step.code, runtime.EvaluateOptions{})
				if e.Error != nil || step.want != "" && string(e.Value) != step.want {
					t.Errorf("%s, then %s: %s: %s, %v", first.name, second.name, step.code, e.Value, e.Error)
				}
			}
		}
	}
}

func replaceName(code, name string) string { return strings.ReplaceAll(code, "NAME", name) }

// What a redeclaration keeps: constants, positions, the value of a var that has no new one.
func TestContextRedeclareDetails(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	const constant = "TypeError: Assignment to constant variable."
	want(t, c, `const a = 1; let b = 2; var d = 3; import { sep } from 'node:path'`, ``)
	for _, code := range []string{`a = 2`, `a++`, `--a`, `[a] = [2]`, `({ a } = { a: 2 })`, `({ x: a = 5 } = {})`, `for (a of [2]);`, `a ||= 0; a &&= 2`, `sep = 1`, `const own = 1; own = 2`, `(() => { a = 2 })()`} {
		wantError(t, c, code, constant)
	}
	if err := wantError(t, c, "1;\n  a = 2", constant); err.Stack != constant+"\n    at cell-13.js:2:5" {
		t.Error(err.Stack)
	}
	want(t, c, `[a, own, sep]`, `[1,1,"/"]`)
	want(t, c, `{ let a = 1; a = 2 }; ((a) => { a = 3 })(1); function f(a) { a = 4 }; try { a = 5 } catch (err) { err.name }`, `"TypeError"`)
	want(t, c, `let a = 5; a = 6; a`, `6`)
	want(t, c, `a = 7; a`, `7`)
	want(t, c, `var d; d`, `3`)
	want(t, c, `var d = d || 4; d`, `3`)
	want(t, c, `let d = d + 1; d`, `4`)
	want(t, c, "const two = a\nvar [b, e] = [8, 9]\nlet [d] = [10]\n;[b, e, d]", `[8,9,10]`)
	err := wantError(t, c, "1\nfunction b() {\n  import.meta.url;\n  throw new Error('in b')\n}\nb()", "Error: in b")
	if !strings.Contains(err.Stack, "at b (cell-22.js:4:9)\n    at cell-22.js:6:1") {
		t.Error(err.Stack)
	}
	wantError(t, c, `throw 1; let later = 2`, "1")
	want(t, c, `var later = 3; later`, `3`)
	want(t, c, `enum E { A = 1 }`, ``)
	want(t, c, `enum E { B = 2 }; Object.keys(E)`, `["2","B"]`)
}
