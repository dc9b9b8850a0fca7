package permissions

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// envWays reads variables in all ways: in this process, a worker, a child, and from the
// memory of a program.
const envWays = `
	import { execFileSync } from 'node:child_process'; import fs from 'node:fs'; import { Worker } from 'node:worker_threads'; import { once } from 'node:events';
	const names = (text) => text.split(/[\0\n]/).filter(Boolean).map(l => l.split('=')[0]).sort().join();
	const worker = new Worker("const { parentPort } = require('worker_threads'); parentPort.postMessage(Object.keys(process.env).sort().join() + '|' + require('fs').readFileSync('/proc/self/environ', 'latin1').includes('hidden-value'))", { eval: true });
	const child = execFileSync('/usr/bin/busybox', ['env'], { encoding: 'utf8' });
	__return({
		node: Object.keys(process.env).sort().join(), worker: (await once(worker, 'message'))[0],
		proc: names(fs.readFileSync('/proc/self/environ', 'latin1')), child: names(child),
		report: String(JSON.stringify(process.report.getReport()).includes('hidden-value')),
		memory: String(fs.readFileSync('/proc/self/environ').includes('hidden-value')),
	});`

func TestPermissionEnv(t *testing.T) {
	const hidden = "hidden-value"
	own := map[string]string{"SECRET_KEY": hidden, "SECRET": hidden, "PUBLIC": "1"}
	ofRun := map[string]string{"RUN_KEY": hidden, "RUN_B": "1"}
	rules := func(r ...policy.Rule) policy.Scope { return policy.Scope{Rules: r} }
	allow := func(patterns ...string) policy.Rule { return policy.Rule{Mode: policy.Allow, Patterns: patterns} }
	deny := func(patterns ...string) policy.Rule { return policy.Rule{Mode: policy.Deny, Patterns: patterns} }
	for _, tc := range []struct {
		name, want string
		scope      policy.Scope
		shows      bool
	}{
		{"denied", "", denied, false},
		{"allowed", "HOME,LANG,PATH,PUBLIC,RUN_B,RUN_KEY,SECRET,SECRET_KEY,TMPDIR,USER", policy.Scope{Default: policy.Allow}, true},
		{"by name", "PUBLIC,RUN_B", rules(allow("PUBLIC", "RUN_B")), false},
		{"a glob", "RUN_B,RUN_KEY", rules(allow("RUN_*")), true},
		{"one character", "RUN_B", rules(allow("RUN_?")), false},
		{"all but some", "HOME,LANG,PATH,PUBLIC,RUN_B,TMPDIR,USER", policy.Scope{Default: policy.Allow, Rules: []policy.Rule{deny("*SECRET*", "*_KEY")}}, false},
		{"the last match decides", "PUBLIC,RUN_B", rules(allow("*"), deny("*"), allow("PUBLIC", "RUN_*"), deny("*KEY")), false},
		{"a default and its exception", "HOME,LANG,PATH,PUBLIC,RUN_B,RUN_KEY,SECRET_KEY,TMPDIR,USER", policy.Scope{Default: policy.Allow, Rules: []policy.Rule{deny("SECRET*"), allow("SECRET_KEY")}}, true},
		{"case counts", "", rules(allow("public", "path")), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := runtime.Options{Env: own, Permissions: policy.Permissions{Env: tc.scope}.Over(policy.Default())}
			rt := harness.Create(t, o)
			res := harness.Run(t, rt, envWays, runtime.RunOptions{Env: ofRun})
			var got map[string]string
			if err := res.Decode(&got); err != nil {
				t.Fatalf("%v: %s", err, res.Stderr)
			}
			shows := "false"
			if tc.shows {
				shows = "true"
			}
			proc, memory := tc.want, shows
			if harness.InGVisor() { // those of the zygote
				proc, memory = "HOME,LANG,LD_BIND_NOW,LD_PRELOAD,PATH,TMPDIR,USER", "false"
			}
			wantSame(t, "seen", map[string]string{
				"node": tc.want, "worker": tc.want + "|" + memory, "proc": proc, "child": tc.want, "report": shows, "memory": memory,
			}, got)
			for _, args := range [][]string{{"env"}, {"cat", "/proc/self/environ"}} {
				text := harness.Output(t, rt, runtime.RunOptions{Env: ofRun}, busybox, args...)
				var names []string
				for _, v := range strings.FieldsFunc(text, func(c rune) bool { return c == 0 || c == '\n' }) {
					name, _, _ := strings.Cut(v, "=")
					names = append(names, name)
				}
				slices.Sort(names)
				wantSame(t, strings.Join(args, " "), tc.want, strings.Join(names, ","))
			}
		})
	}
}

// Programs that may not see PATH search the C library's default path, and so does Command.
func TestPermissionEnvWithoutPath(t *testing.T) {
	rt := harness.CreatePermitted(t, policy.Permissions{Env: denied})
	if got := harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "echo up"); got != "up" {
		t.Errorf("sh: %s", got)
	}
	if _, err := rt.Command(t.Context(), "node", nil, runtime.RunOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("node: %v", err)
	}
	if got := harness.Output(t, rt, runtime.RunOptions{}, node, "-p", "Object.keys(process.env).length"); got != "0" {
		t.Errorf("%s: %s", node, got)
	}
}

// A program that sees no variables uses the usual language.
func TestPermissionEnvAndLanguage(t *testing.T) {
	const code = `__return([Intl.DateTimeFormat().resolvedOptions(), new Intl.Collator().resolvedOptions(), (1234.5).toLocaleString(), Buffer.from('\u00e4').length])`
	want := harness.Run(t, harness.CreatePermitted(t, policy.Permissions{}), code, runtime.RunOptions{})
	got := harness.Run(t, harness.CreatePermitted(t, policy.Permissions{Env: denied}), code, runtime.RunOptions{})
	wantSame(t, "language", string(want.Value), string(got.Value))
}
