package run_test

import (
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// fileUses are programs that need the file they are in, with their output.
var fileUses = []struct{ name, file, code, want string }{
	{"its path", "a.mjs", `import fs from 'node:fs'; console.log(fs.realpathSync(process.argv[1]) === import.meta.filename, import.meta.main)`, "true true\n"},
	{"its source", "a.cjs", `console.log(require('fs').readFileSync(__filename, 'utf8').slice(0, 12))`, "console.log(\n"},
	{"its source, TypeScript", "a.ts", `enum E { A }; import fs from 'node:fs'; console.log(fs.readFileSync(process.argv[1], 'utf8').slice(0, 12))`, "enum E { A }\n"},
	{"fork", "a.cjs", `if (process.argv[2]) process.send(__filename); else require('child_process').fork(__filename, ['x']).on('message', m => console.log(m === __filename))`, "true\n"},
	{"fork of a module", "a.mjs", `import { fork } from 'node:child_process'; if (process.argv[2]) process.send(import.meta.url); else fork(import.meta.filename, ['x']).on('message', m => console.log(m === import.meta.url))`, "true\n"},
	{"fork of TypeScript", "a.ts", `import { fork } from 'node:child_process'; const child: boolean = process.argv.length > 2; if (child) process.send!(1 as number); else fork(process.argv[1], ['x']).on('message', m => console.log(m))`, "1\n"},
	{"cluster", "a.cjs", `const c = require('cluster'); if (c.isPrimary) c.fork().on('message', m => { console.log(m); c.disconnect() }); else process.send('worker')`, "worker\n"},
	{"spawn", "a.mjs", `import { spawnSync } from 'node:child_process'; console.log(process.argv[2] ?? spawnSync(process.execPath, [process.argv[1], 'x']).stdout + 'y')`, "x\ny\n"},
	{"require", "a.cjs", `exports.a = 1; console.log(require(__filename) === exports)`, "true\n"},
	{"import", "a.mjs", `export const a = 1; import(import.meta.url).then((m) => console.log(m.a))`, "1\n"},
	{"a sibling", "a.mjs", `import fs from 'node:fs'; export const a = 1; fs.writeFileSync('b.mjs', 'export { a } from ' + JSON.stringify(import.meta.url)); import('./b.mjs').then((m) => console.log(m.a))`, "1\n"},
	{"a sibling of CommonJS", "a.cjs", `const fs = require('fs'); exports.a = 1; fs.writeFileSync('b.cjs', 'exports.a = require(' + JSON.stringify(__filename) + ').a'); console.log(require('./b.cjs'), __dirname, require.resolve('./b.cjs'))`, "{ a: 1 } /workspace /workspace/b.cjs\n"},
	{"packages", "a.mjs", `import fs from 'node:fs'; import { createRequire } from 'node:module'; import { spawnSync } from 'node:child_process';
		fs.mkdirSync('node_modules/p', { recursive: true }); fs.writeFileSync('node_modules/p/index.js', 'module.exports = 1'); fs.writeFileSync('data.json', '2');
		const require = createRequire(import.meta.url); console.log((await import('p')).default, require('p'), require('./data.json'), require('os').EOL.length, import.meta.resolve('./x'));
		if (!process.argv[2]) console.log(spawnSync(process.execPath, ['-e', 'console.log(require("module").createRequire(process.argv[1])("p"))', import.meta.filename]).stdout + '')`, "1 1 2 1 file:///workspace/x\n1\n\n"},
	{"nothing to change", "a.cjs", `const fs = require('fs'), { dirname } = require('path'), folder = dirname(__filename);
		const code = (f) => { try { f(); return 'done' } catch (err) { return err.code } };
		console.log(code(() => fs.writeFileSync(__filename, '')), code(() => fs.unlinkSync(__filename)), code(() => fs.chmodSync(__filename, 0o777)), code(() => fs.writeFileSync(folder + '/x', '')), code(() => fs.readdirSync(dirname(folder))), fs.readdirSync('.').includes('a.cjs'), process.cwd())`, "EROFS EROFS EROFS EROFS EACCES false /workspace\n"},
	{"an error without gaol's frames", "a.mjs", `import('./missing.mjs').catch((err) => console.log(err.code, err.stack.includes('program.cjs')))`, "ERR_MODULE_NOT_FOUND false\n"},
}

// The main program is a file while it runs, which nothing can change, and imports as if it were in
// the working directory.
func TestProgramIsFile(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range fileUses {
		t.Run(tc.name, func(t *testing.T) {
			if harness.InGVisor() && tc.name == "nothing to change" { // it checks modes first
				tc.want = "EACCES EACCES EROFS EACCES EACCES false /workspace\n"
			}
			res := harness.Run(t, rt, tc.code, runtime.RunOptions{Name: tc.file})
			if string(res.Stdout) != tc.want || res.ExitCode != 0 {
				t.Errorf("%q, want %q; exit code %d\n%s", res.Stdout, tc.want, res.ExitCode, res.Stderr)
			}
		})
	}
}

// The file ends with its run, and is in no snapshot and no list of the host.
func TestProgramFileEnds(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	path := string(harness.Run(t, rt, `process.stdout.write(process.argv[1])`, runtime.RunOptions{}).Stdout)
	for _, dir := range []string{"/", "/workspace", "/run"} {
		entries, err := rt.FS().ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), "main") {
				t.Errorf("%s is in %s", e.Name(), dir)
			}
		}
	}
	res := harness.Run(t, rt, `const fs = require('fs'); console.log(fs.existsSync(process.argv[2]), process.argv[1] === process.argv[2])`, runtime.RunOptions{Args: []string{path}})
	if string(res.Stdout) != "false false\n" {
		t.Errorf("after the run: %s%s", res.Stdout, res.Stderr)
	}
}

// A forked program that cannot open its own file does not get one.
func TestProgramNeedsFile(t *testing.T) {
	const find = `const fs = require('fs'); console.log(['cjs', 'mjs'].some((ending) => fs.existsSync('/run/gaol/1/main.' + ending)))`
	for code, want := range map[string]string{
		`setInterval(() => {}, 1000)`:                          "false\n",
		`const p = process; setInterval(() => {}, 1000)`:       "true\n",
		`await import('node:fs'); setInterval(() => {}, 1000)`: "true\n",
	} {
		rt := harness.Create(t, runtime.Options{})
		p, err := rt.SpawnCode(t.Context(), code, runtime.SpawnOptions{})
		if err != nil {
			t.Fatal(err)
		}
		res := harness.Run(t, rt, find, runtime.RunOptions{})
		if res.Launcher != runtime.LauncherZygote { // a separate Node may load other code
			want = "true\n"
		}
		if string(res.Stdout) != want {
			t.Errorf("%s: %s%s", code, res.Stdout, res.Stderr)
		}
		p.Kill()
	}
}

// A run that may not read files reads its own program, and not that of another run.
func TestProgramFileOfOthers(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	deny := policy.Permissions{FS: policy.Scope{Default: policy.Deny}}
	const readOwn = `const fs = require('fs'); console.log(fs.readFileSync(__filename, 'utf8').length > 0);
		try { fs.readFileSync(process.argv[2]); console.log('read') } catch (err) { console.log(err.code) }`
	for what, o := range map[string]struct{ runtime, run policy.Permissions }{
		"denied to the runtime": {runtime: deny},
		"denied to the run":     {run: deny},
	} {
		t.Run(what, func(t *testing.T) {
			rt := harness.Create(t, runtime.Options{Permissions: o.runtime})
			other, err := rt.SpawnCode(t.Context(), `process.title; setInterval(() => {}, 1000)`, runtime.SpawnOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Kill()
			for _, path := range []string{"/run/gaol/1/main.mjs", "/run/gaol/2/main.cjs"} {
				if path == "/run/gaol/2/main.cjs" && o.runtime.IsZero() { // its own
					continue
				}
				res := harness.Run(t, rt, readOwn, runtime.RunOptions{Permissions: o.run, Args: []string{path}})
				if out := string(res.Stdout); out != "true\nEACCES\n" && out != "true\nENOENT\n" {
					t.Errorf("%s: %s%s", path, out, res.Stderr)
				}
			}
		})
	}
}
