package run

import (
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// sources are files of TypeScript that import each other as compilers allow, and use what Node does not translate.
var sources = map[string]string{
	"util.ts": `import { deep, type Q, Shape } from './lib'
export enum Color { Red = 1, Green }
export class Pair { constructor(public x: number, private readonly y = 2) {} sum() { return this.x + this.y + deep() } }
export type T = number
export interface I { a: string }
export namespace N { export const five = 5 }
export const none: Shape | Q | undefined = undefined`,
	"lib/index.ts":       "export interface Shape { a: 1 }\nexport type Q = 1\nexport function deep(): number { return 100 }",
	"view.tsx":           "const React = { createElement: (t: string, p: unknown, ...c: unknown[]) => ({ t, c }) }\nexport const view = <p>hi</p>",
	"old/a.cts":          "enum X { A = 7 }\nmodule.exports = { x: X.A, dir: __dirname }",
	"typed/package.json": `{"type": "commonjs"}`,
	"typed/b.ts":         "import { sep } from 'node:path'\nenum X { A = 8 }\nexport const b = [X.A, sep, typeof module]",
	"bom.mts":            "\ufeff#!/usr/bin/env node\nexport enum B { C = 9 }",
	"broken.ts":          "export enum A { B }\nconst x: = 1",
	"throws.ts":          "enum A { B = 3 }\n\nexport function boom() {\n  throw new Error('here' + A.B)\n}",
	"plain.js":           "export const plain = 1",

	"nest/tsconfig.json": "{\n  // as frameworks have it\n  \"compilerOptions\": { \"experimentalDecorators\": true, },\n}",
	"nest/src/app.ts": `const seen: unknown[] = []
function Inject(name: string) { return (target: any, key: any, index: number) => { seen.push([name, index]) } }
function Log(target: any, key: string, d: PropertyDescriptor) { seen.push([key, typeof d.value]) }
export class App { constructor(@Inject('db') private db = 1) {} @Log run() { return seen } }`,
	"meta/tsconfig.json": `{"compilerOptions": {"experimentalDecorators": true, "emitDecoratorMetadata": true}}`,
	"meta/a.ts":          "function D(t: any) {}\n@D export class A {}",
	"meta/b.ts":          "export enum B { C = 'a@b' }",
	"new/a.ts":           "const names: unknown[] = []\nfunction D(value: any, { kind, name }: any) { names.push(kind, name) }\n@D export class A { @D accessor x = 1 }\nexport { names }",
}

func sourceFiles(below string) map[string][]byte {
	files := map[string][]byte{}
	for name, text := range sources {
		files[below+name] = []byte(text)
	}
	return files
}

var typescriptImports = []struct{ name, code, want string }{
	{"extensions", `import { type T, Pair, Color, I, N } from './util'
import { Pair as Q } from './util.js'
import { Pair as R } from './util.ts'
import { deep } from './lib'
import { plain } from './plain'
const t: T = 1; let i: I | undefined
console.log(new Pair(t).sum(), Color.Green, Pair === Q, Q === R, N.five, deep(), plain)`, "103 2 true true 5 100 1\n"},
	{"languages", `import { view } from './view'
import old from './old/a.cjs'
import { b } from './typed/b'
import { B } from './bom.mjs'
console.log(JSON.stringify([view, old.x, b, B.C]))`, `[{"t":"p","c":["hi"]},7,[8,"/","object"],9]` + "\n"},
	{"dynamic", `const { Color } = await import('./util'); const { default: { x } } = await import('./old/a.cjs'); console.log(Color.Red, x)`, "1 7\n"},
	{"errors", `for (const name of ['./nosuch', './broken']) await import(name).catch((e: any) => console.log(e.code ?? e.name))
try { (await import('./throws')).boom() } catch (e: any) { console.log(e.message, /throws\.ts:4:9/.test(e.stack)) }`, "ERR_MODULE_NOT_FOUND\nSyntaxError\nhere3 true\n"},
	{"decorators", `import { App } from './nest/src/app'
import { names } from './new/a'
import { B } from './meta/b'
console.log(JSON.stringify([new App().run(), names, B.C]))
await import('./meta/a').catch((e: any) => console.log(e.message))`, `[[["run","function"],["db",0]],["accessor","x","class","A"],"a@b"]` + "\nemitDecoratorMetadata is not supported: it needs a compiler that knows all types\n"},
	{"a pragma", "// @experimentalDecorators\nfunction P(t: any, k: any, i: number) { console.log(k, i) }\nclass A { f(@P x: number) {} }", "f 0\n"},
}

// Programs import TypeScript from files of the sandbox, and from mounted folders.
func TestTypeScriptImports(t *testing.T) {
	for _, launcher := range []runtime.Launcher{runtime.LauncherZygote, runtime.LauncherExec} {
		rt := harness.Create(t, runtime.Options{Launcher: launcher, Files: sourceFiles("/workspace/")})
		for _, tc := range typescriptImports {
			for _, format := range []string{"main.ts", "main.mts"} {
				res, err := rt.Exec(t.Context(), tc.code, runtime.RunOptions{Name: format})
				if err != nil {
					t.Fatal(err)
				}
				if string(res.Stdout) != tc.want || res.ExitCode != 0 {
					t.Errorf("%s, %s, %s: exit code %d\n%s%s\nwant\n%s", launcher, tc.name, format, res.ExitCode, res.Stdout, res.Stderr, tc.want)
				}
			}
		}
	}
}

// The tsconfig.json nearest to a program selects its decorators.
func TestTypeScriptDecorators(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: sourceFiles("/workspace/")})
	const code = "function P(t: any, k: any, i: number) { console.log(k, i) }\nclass A { f(@P x: number) {} }"
	for _, tc := range []struct{ cwd, name, want string }{
		{"/workspace/nest/src", "main.ts", "f 0\n"},
		{"/workspace", "/workspace/nest/src/main.ts", "f 0\n"},
		{"/workspace", "main.ts", ""},
	} {
		res, err := rt.Run(t.Context(), code, runtime.RunOptions{Name: tc.name, Cwd: tc.cwd})
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Stdout) != tc.want || (res.ExitCode == 0) != (tc.want != "") {
			t.Errorf("%s in %s: exit code %d\n%s%s", tc.name, tc.cwd, res.ExitCode, res.Stdout, res.Stderr)
		}
	}
}

// Programs of CommonJS, of JavaScript, snippets and cells import it, too.
func TestTypeScriptImporters(t *testing.T) {
	for _, launcher := range []runtime.Launcher{runtime.LauncherZygote, runtime.LauncherExec} {
		rt := harness.Create(t, runtime.Options{Launcher: launcher, Files: sourceFiles("/workspace/")})
		for name, code := range map[string]string{
			"main.cts": `const { Color } = require('./util'); const { x } = require('./old/a.cjs'); console.log(Color.Green, require('./lib').deep(), require('./util.ts').Color === Color, x)`,
			"main.mjs": `import { Color } from './util.ts'; import { deep } from './lib/index.ts'; import a from './old/a.cts'; console.log(Color.Green, deep(), true, a.x)`,
		} {
			res, err := rt.Exec(t.Context(), code, runtime.RunOptions{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Stdout) != "2 100 true 7\n" {
				t.Errorf("%s, %s: %s%s", launcher, name, res.Stdout, res.Stderr)
			}
		}
		const code = "import { Color, I } from './util'\nconst i: I = { a: 'a' }\n;[Color.Green, (await import('./old/a.cjs')).default.x, i.a]"
		const want = `[2,7,"a"]`
		if e := harness.Evaluate(t, rt, code, runtime.EvaluateOptions{}); string(e.Value) != want {
			t.Errorf("%s: %s, %v", launcher, e.Value, e.Error)
		}
		c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			e, err := c.Evaluate(t.Context(), code, runtime.EvaluateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Value) != want {
				t.Errorf("%s: a cell: %s, %v", launcher, e.Value, e.Error)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A program cannot translate more than the limits of a run, nor write other frames that do.
func TestTypeScriptHostileFrames(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: sourceFiles("/workspace/")})
	const request = `import { Color } from './util'
import { writeSync } from 'node:fs'
function send(kind: number, call: number, format: number, text: string) {
  const body = Buffer.concat([Buffer.from([kind, 0, 0, 0, call, format]), Buffer.from(text)])
  const size = Buffer.alloc(4); size.writeUInt32BE(body.length)
  try { writeSync(3, Buffer.concat([size, body])) } catch {} // the host has closed the channel
}
`
	for name, code := range map[string]string{
		"two at once":   `for (let i = 0; i < 9; i++) send(9, 7, 1, 'a.ts\0\0' + 'x=a?(b):c=>d?'.repeat(24))`,
		"a bad format":  `send(9, 7, 9, 'a.ts\0\0')`,
		"no source":     `send(9, 7, 0, 'a.ts')`,
		"one too large": `send(9, 7, 0, 'a.ts\0\0' + 'x'.repeat(1 << 20))`,
	} {
		res, err := rt.Exec(t.Context(), request+code+"\nconsole.log(Color.Red)", runtime.RunOptions{Name: "main.ts"})
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Stdout) != "1\n" {
			t.Errorf("%s: %s%s", name, res.Stdout, res.Stderr)
		}
	}
	// The host still serves others.
	res, err := rt.Exec(t.Context(), "import { Color } from './util'\nconsole.log(Color.Red)", runtime.RunOptions{Name: "main.ts"})
	if err != nil || !strings.HasPrefix(string(res.Stdout), "1") {
		t.Errorf("%v, %s%s", err, res.Stdout, res.Stderr)
	}
}
