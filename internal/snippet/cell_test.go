package snippet

import "testing"

// notebooks are cells that run in order in one context.
var notebooks = []struct {
	name  string
	cells []shape
}{
	{"declarations last", []shape{
		{code: "const a = 1\nlet b = 2, { c } = { c: 3 }", value: undefined},
		{code: "function f(x) { return x + a }\nclass D { e = c }", value: undefined},
		{code: "async function g() { return f(b) }", value: undefined},
		{code: "[await g(), new D().e]", value: `[3,3]`},
		{code: "const a = 10\nlet b = 20", value: undefined},
		{code: "f(b)", value: `30`},
	}},
	{"imports are declarations", []shape{
		{code: "import path, { sep as s, 'join' as j } from 'node:path'", value: undefined},
		{code: "import * as all from 'node:path'; import 'node:fs'", value: undefined},
		{code: "import { sep } from 'node:path'\nimport { sep as again } from 'node:path'\n[s, j('a', 'b'), path.sep, all.sep, sep, again]", value: `["/","a/b","/","/","/","/"]`},
		{code: "import { readFileSync } from 'node:fs'\nimport { sep } from 'node:path'\ntypeof readFileSync", value: `"function"`},
		{code: "import data from 'data:application/json,{\"a\":1}' with { type: 'json' }\ndata.a", value: `1`},
	}},
	{"an import after its use", []shape{
		{code: "const a = sep\n(a)\nimport { sep } from 'node:path'\n[a]", value: undefined + "!"},
		{code: "const b = sep\nimport { sep } from 'node:path'\n[b]", value: `["/"]`},
		{code: "b\nimport 'node:fs'\n(b)", value: `"/"`},
	}},
	{"exports are declarations", []shape{
		{code: "export const a = 1, b = 2\nexport { a as c }\nexport function f() { return a + b }", value: `{"c":1,"a":1,"b":2}`},
		{code: "f()", value: `3`},
		{code: "export default class A { x = 1 }", value: `{}`},
		{code: "new A().x", value: `1`},
		{code: "export default function main() { return 5 }\nexport const d = 4", value: `{"d":4}`},
		{code: "main() + d", value: `9`},
		{code: "export default main() + 1", value: `6`},
		{code: "export default { a: 1 }\nexport /* two */ const e = 2\ne", value: `2`},
		{code: "export * from 'node:fs'\nexport * as fs from 'node:fs'\nexport { sep } from 'node:path'", value: undefined},
		{code: "export enum E { X = 7 }\nE.X", value: `7`},
	}},
	{"a return makes the cell a function body", []shape{
		{code: "import { sep } from 'node:path'\nconst a = 1\nif (a) return [a, sep]", value: `[1,"/"]`},
		{code: "[typeof a, sep]", value: `["undefined","/"]`},
	}},
	{"values of statements", []shape{
		{code: "1; const a = 2", value: undefined},
		{code: "for (const x of [1]) x", value: undefined},
		{code: "if (a) { Promise.resolve(3) }", value: `3`},
		{code: "try { await Promise.reject(1) } catch { a } finally { 9 }", value: `2`},
		{code: "Promise.resolve(4)", value: `4`},
		{code: "({ a })", value: `{"a":2}`},
		{code: "{ a }", value: `{"a":2}`},
		{code: "with ({ z: 1 }) z", value: undefined},
	}},
	{"imported names", []shape{
		{code: "import path, { sep as s, 'join' as j, \"dirname\" as d } from 'node:path'\n__asked", value: `["node:path","default","sep","join","dirname"]`},
		{code: "import p2, * as all from 'node:fs'\n[typeof all.readFileSync, p2 === all.default, __asked]", value: `["function",true,["node:fs","default"]]`},
		{code: "import * as all2 from 'node:os'\n__asked", value: `["node:os"]`},
		{code: "import 'node:url'\n__asked", value: `["node:os"]`},
		{code: "import { type T, sep as u, Unused } from 'node:path'\nconst unused: Unused = u\n__asked", value: `["node:path","sep"]`},
		{code: "import { s\\u0065p as t } from 'node:path'\n[t, __asked]", value: `["/",["node:path","sep"]]`},
	}},
	{"the guest's names", []shape{
		{code: "[import.meta.dirname, import . meta.dirname]", value: `["/here","/here"]`},
		{code: "const t: string = import.meta.dirname\nt", value: `"/here"`},
	}},
}

func TestNotebooks(t *testing.T) {
	var programs [][]*Program
	for _, n := range notebooks {
		var cells []*Program
		for _, s := range n.cells {
			p, err := Cell(s.code, nil)
			if err != nil {
				t.Fatalf("%s: %q: %v", n.name, s.code, err)
			}
			cells = append(cells, p)
		}
		programs = append(programs, cells)
	}
	for i, outcomes := range runCells(t, programs...) {
		for j, got := range outcomes {
			s := notebooks[i].cells[j]
			expect(t, s.code, programs[i][j].Code(), s.value, got)
		}
	}
}
