package run

import (
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// Code given as text is an ES module, unless it can only be CommonJS.
func TestModuleFormats(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: map[string][]byte{"/workspace/package.json": []byte(`{"type": "module"}`)}})
	const tell = `; globalThis.__return(typeof require + ' ' + typeof this)`
	const esm, cjs = `"undefined undefined"`, `"function object"`
	for _, tc := range []struct {
		name, code string
		opts       runtime.RunOptions
		want       string
	}{
		{"no names", `__return(typeof this)`, runtime.RunOptions{}, `"undefined"`},
		{"require", `const os = require('os'); __return([os.hostname(), __filename, require.main === module, __dirname])`, runtime.RunOptions{}, `["secure-exec","/run/gaol/N/main.cjs",true,"/workspace"]`},
		{"in a string", `'require'; __return(typeof this)`, runtime.RunOptions{}, `"undefined"`},
		{"a local", `function f(require) { return require + typeof this } __return(f(1))`, runtime.RunOptions{}, `"1undefined"`},
		{"with an import", `import os from 'os'` + tell, runtime.RunOptions{}, esm},
		{"with await", `await 1` + tell, runtime.RunOptions{}, esm},
		{"by name", tell, runtime.RunOptions{Name: "a.mjs"}, esm},
		{"by another name", tell, runtime.RunOptions{Name: "a.cjs"}, cjs},
		{"by text, named .js", tell, runtime.RunOptions{Name: "a.js"}, cjs},
		{"a module named .js", `export {}` + tell, runtime.RunOptions{Name: "a.js"}, esm},
		{"forced to ESM", tell, runtime.RunOptions{Format: runtime.FormatESM}, esm},
		{"forced to ESM, named .js", tell, runtime.RunOptions{Format: runtime.FormatESM, Name: "a.js"}, esm},
		{"forced to CommonJS", `__return(typeof this)`, runtime.RunOptions{Format: runtime.FormatCommonJS}, `"object"`},
		{"forced to CommonJS, named .js", `with ({ a: 1 }) __return([a, __filename])`, runtime.RunOptions{Format: runtime.FormatCommonJS, Name: "a.js"}, `[1,"/run/gaol/N/a.js"]`},
		{"detected as CommonJS", `implicit = 1; __return(typeof this)`, runtime.RunOptions{Format: runtime.FormatDetect, Name: "a.js"}, `"object"`},
		{"detected as ESM", `await 1; __return(typeof this)`, runtime.RunOptions{Format: runtime.FormatDetect, Name: "a.js"}, `"undefined"`},
		{"detected by the name", `__return(typeof this)`, runtime.RunOptions{Format: runtime.FormatDetect, Name: "a.mjs"}, `"undefined"`},
		{"a worker of CommonJS", `const { Worker, isMainThread, parentPort } = require('worker_threads');
			if (isMainThread) new Worker(__filename).on('message', m => __return(m)); else parentPort.postMessage(typeof require + __filename)`, runtime.RunOptions{}, `"function/run/gaol/N/main.cjs"`},
	} {
		res := harness.Run(t, rt, tc.code, tc.opts)
		if harness.UnnumberPrograms(res.Value) != tc.want || res.ExitCode != 0 {
			t.Errorf("%s: %s, want %s; exit code %d, stderr %s", tc.name, res.Value, tc.want, res.ExitCode, res.Stderr)
		}
	}
}

func TestModuleFormatRefused(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct {
		opts runtime.RunOptions
		want string
	}{
		{runtime.RunOptions{Name: "a.mjs", Format: runtime.FormatCommonJS}, `option Format: cjs contradicts the ending of "a.mjs"`},
		{runtime.RunOptions{Name: "a.cts", Format: runtime.FormatESM}, `option Format: esm contradicts the ending of "a.cts"`},
		{runtime.RunOptions{Format: 9}, "option Format: format 9 is not valid"},
		{runtime.RunOptions{Name: "a.json"}, `option Name: "a.json" is not a file name or absolute path that ends in`},
	} {
		if _, err := rt.Run(t.Context(), "", tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %s", tc.opts, err, tc.want)
		}
	}
}

// A global of the host is not one of CommonJS's names.
func TestModuleFormatWithBindings(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{"module": map[string]any{"id": 7}}})
	res := harness.Run(t, rt, `__return([module.id, typeof this])`, runtime.RunOptions{})
	if string(res.Value) != `[7,"undefined"]` {
		t.Errorf("value %s, stderr %s", res.Value, res.Stderr)
	}
}

func TestSpawnCommonJS(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p, err := rt.SpawnCode(t.Context(), `__return(typeof this)`, runtime.SpawnOptions{Format: runtime.FormatCommonJS})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Wait(t.Context())
	if err != nil || string(res.Value) != `"object"` {
		t.Errorf("%s, %v", res.Value, err)
	}
}

// TypeScript and JSX run, whatever syntax they use, and errors have the lines of the code.
func TestTypeScript(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const react = "const React = { createElement: (type: string, props: object | null, ...children: unknown[]) => ({ type, children }) };\n"
	const throws = "interface A {\n  a: number\n}\n\nenum E { One = 1 }\n\nfunction f(a: A): never {\n  throw new RangeError('no ' + E.One)\n}\n"
	long := throws + "// " + strings.Repeat("-", 300<<10) + "\n"
	for _, tc := range []struct {
		name, file, code string
		format           runtime.ModuleFormat
		value            string
		stderr           []string // parts of it; none means empty, with exit code 0
	}{
		{name: "enum", file: "a.ts", code: "enum Color { Red, Green }\n__return([Color[1], Color.Green, import.meta.filename])", value: `["Green",1,"/run/gaol/N/a.ts"]`},
		{name: "parameter properties and decorators", file: "a.ts", code: "function twice(f: (a: number) => number, _: unknown) { return function (this: A, a: number) { return 2 * f.call(this, a) } }\nclass A { constructor(private b: number) {} @twice add(a: number) { return a + this.b } }\n__return(new A(1).add(2))", value: `6`},
		{name: "namespace", file: "a.mts", code: "namespace N { export const n = 4 }\n__return(N.n)", value: `4`},
		{name: "JSX", file: "a.tsx", code: react + `__return(<p id="a">x{1}</p>)`, value: `{"type":"p","children":["x",1]}`},
		{name: "JSX without types", file: "a.jsx", code: strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(react, ": string", ""), ": object | null", ""), ": unknown[]", "") + `__return(<p>x</p>)`, value: `{"type":"p","children":["x"]}`},
		{name: "CommonJS", file: "a.cts", code: "import path = require('path');\nimport { EOL } from 'os';\nenum E { A = 'a' }\nexport const e: E = E.A;\n__return([path.sep, EOL, module.exports, __filename])", value: `["/","\n",{"e":"a"},"/run/gaol/N/a.cts"]`},
		{name: "CommonJS by its names", file: "a.ts", code: "const a: number = 1;\n__return([a, require('path').sep, __filename])", value: `[1,"/","/run/gaol/N/a.ts"]`},
		{name: "detected", file: "a.ts", code: "__return(typeof this as string)", format: runtime.FormatDetect, value: `"object"`},
		{name: "forced", file: "a.ts", code: "import { sep } from 'path'; __return(sep + typeof (this as any))", format: runtime.FormatCommonJS, value: `"/object"`},
		{name: "an uncaught error", file: "a b#.ts", code: throws + "f({ a: 1 })", stderr: []string{"/run/gaol/N/a b#.ts:8\n  throw new RangeError('no ' + E.One)\n", "RangeError: no 1\n    at f (/run/gaol/N/a b#.ts:8:9)\n    at <anonymous> (/run/gaol/N/a b#.ts:10:1)\n"}},
		{name: "one of CommonJS", file: "a.cts", code: throws + "f({ a: 1 })", stderr: []string{"/run/gaol/N/a.cts:8\n", "RangeError: no 1\n    at f (/run/gaol/N/a.cts:8:9)\n    at Object.<anonymous> (/run/gaol/N/a.cts:10:1)\n"}},
		{name: "err.stack", file: "a.tsx", code: throws + "try { f({ a: 1 }) } catch (err: any) { __return(err.stack.split('\\n').slice(0, 2)) }", value: `["RangeError: no 1","    at f (/run/gaol/N/a.tsx:8:9)"]`},
		{name: "in a worker", file: "a.ts", code: throws + "import { Worker, isMainThread } from 'node:worker_threads';\nif (isMainThread) new Worker(import.meta.filename).on('error', err => __return(err.stack.split('\\n')[1]));\nelse f({ a: 1 })", value: `"    at f (/run/gaol/N/a.ts:8:9)"`},
		{name: "a syntax error", file: "a.ts", code: "enum E { One }\nconst a: number = = 2;\n", stderr: []string{"/run/gaol/N/a.ts:2\nconst a: number = = 2;\n                  ^\n", "SyntaxError: Unexpected \"=\"\n    at ", "/run/gaol/N/a.ts:2:19"}},
		{name: "a syntax error of CommonJS", file: "a.cts", code: "\nconst a: number = = 2;\n", stderr: []string{"/run/gaol/N/a.cts:2\n", "/run/gaol/N/a.cts:2:19"}},
		{name: "too long for the host", file: "a.ts", code: strings.Replace(long, "enum E { One = 1 }", "const E = { One: 1 }", 1) + "f({ a: 1 } as A)", stderr: []string{"RangeError: no 1", "a.ts:8:9"}},
		{name: "with JSX", file: "a.tsx", code: long, stderr: []string{"SyntaxError: the file has 307319 bytes, the limit is 262144"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := harness.Run(t, rt, tc.code, runtime.RunOptions{Name: tc.file, Format: tc.format})
			if harness.UnnumberPrograms(res.Value) != tc.value || (res.ExitCode == 0) != (tc.stderr == nil) || tc.stderr == nil && len(res.Stderr) > 0 {
				t.Errorf("value %s, want %s; exit code %d, stderr %s", res.Value, tc.value, res.ExitCode, res.Stderr)
			}
			for _, part := range tc.stderr {
				if !strings.Contains(harness.UnnumberPrograms(res.Stderr), part) {
					t.Errorf("want %q in the standard error\n%s", part, res.Stderr)
				}
			}
		})
	}
}
