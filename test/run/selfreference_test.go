package run_test

import (
	"fmt"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// selfReferences are programs that write a package.json of their own folder, and then import
// the package by its name.
var selfReferences = map[string]string{
	"a.mjs": `import fs from 'node:fs';
		fs.writeFileSync('package.json', '{ "name": "itself", "type": "module", "exports": "./lib.js" }');
		fs.writeFileSync('lib.js', 'export const answer = 42');
		console.log((await import('itself')).answer)`,
	"a.cjs": `const fs = require('fs');
		fs.writeFileSync('package.json', '{ "name": "itself", "exports": "./lib.cjs" }');
		fs.writeFileSync('lib.cjs', 'exports.answer = 42');
		console.log(require('itself').answer);
		import('itself').then((m) => console.log(m.answer))`,
}

// A program can import the package that it has written, with each launcher, as with plain Node.
func TestSelfReference(t *testing.T) {
	const plain = `const { spawnSync } = require('child_process'), fs = require('fs');
		fs.mkdirSync('plain');
		fs.writeFileSync('plain/' + process.argv[2], process.argv[3]);
		const { stdout, stderr } = spawnSync(process.execPath, [process.argv[2]], { cwd: 'plain' });
		process.stdout.write(stdout), process.stderr.write(stderr)`
	for _, l := range harness.Launchers {
		for name, code := range selfReferences {
			t.Run(fmt.Sprint(l, " ", name), func(t *testing.T) {
				create := func() *runtime.NodeRuntime { return harness.Create(t, runtime.Options{Launcher: l}) }
				rt := create()
				want := harness.Run(t, rt, plain, runtime.RunOptions{Args: []string{name, code}})
				if len(want.Stdout) == 0 {
					t.Fatalf("plain Node prints nothing: this test proves nothing: %s", want.Stderr)
				}
				got := harness.Run(t, rt, code, runtime.RunOptions{Name: name})
				if string(got.Stdout) != string(want.Stdout) {
					t.Errorf("%q, plain Node prints %q\n%s", got.Stdout, want.Stdout, got.Stderr)
				}
				if name == "a.cjs" {
					return
				}
				ev, err := create().Evaluate(t.Context(), code, runtime.EvaluateOptions{})
				if err != nil || len(ev.Logs) != 1 || ev.Logs[0].Text != "42" {
					t.Errorf("evaluation: %+v, %v", ev, err)
				}
			})
		}
	}
}

// A Node that begins in / still works in the working directory, which must exist.
func TestWorkingDirectory(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Launcher: runtime.LauncherExec})
	const code = `console.log(process.cwd(), require('fs').readlinkSync('/proc/self/cwd'))`
	if err := rt.FS().WriteFile("/workspace/preloaded.cjs", nil, hostfs.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, env := range []map[string]string{nil, {"NODE_OPTIONS": "--require=./preloaded.cjs"}} {
		res := harness.Run(t, rt, code, runtime.RunOptions{Env: env})
		if string(res.Stdout) != "/workspace /workspace\n" {
			t.Errorf("%v: %q\n%s", env, res.Stdout, res.Stderr)
		}
	}
	if res, err := rt.Run(t.Context(), code, runtime.RunOptions{Cwd: "/workspace/missing"}); err == nil {
		t.Errorf("a missing directory: %+v", res)
	}
}
