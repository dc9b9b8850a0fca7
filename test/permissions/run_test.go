package permissions

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// runWays tries one thing of each scope.
const runWays = `
	import fs from 'node:fs'; import net from 'node:net'; import { spawnSync } from 'node:child_process'; import { once } from 'node:events';
	await attempt('read', () => { fs.readFileSync('/workspace/kept') });
	await attempt('write', () => { fs.writeFileSync('/workspace/kept', 'x') });
	await attempt('list', () => { fs.readdirSync('/workspace') });
	await attempt('chmod', () => { fs.chmodSync('/workspace/kept', 0o644) });
	await attempt('rename', () => { fs.renameSync('/workspace/kept', '/workspace/kept2'); fs.renameSync('/workspace/kept2', '/workspace/kept') });
	const server = net.createServer(s => s.end());
	await attempt('listen', async () => { server.listen(7500, '127.0.0.1'); await once(server, 'listening') });
	await attempt('connect', async () => { await once(net.connect(7500, '127.0.0.1'), 'connect') });
	await attempt('spawn', () => { const { error } = spawnSync('/bin/true'); if (error) throw error });
	await attempt('signal', () => { process.kill(+process.argv[2], 0) });
	await attempt('see', () => { fs.readFileSync('/proc/' + process.argv[2] + '/comm') });
	await attempt('env', () => process.env.OWN ? 'ok' : 'none');`

// runWithout is the result of a run that may do everything, except for the given ways.
func runWithout(but map[string]string) map[string]string {
	all := map[string]string{}
	for _, way := range []string{"read", "write", "list", "chmod", "rename", "listen", "connect", "spawn", "signal", "see", "env"} {
		all[way] = "ok"
	}
	for way, code := range but {
		all[way] = code
	}
	return all
}

// writingDenied denies all operations that write, everywhere.
func writingDenied() policy.Permissions {
	return policy.Permissions{FS: policy.Scope{Default: policy.Deny, Rules: []policy.Rule{
		{Mode: policy.Allow, Operations: []policy.Operation{"read", "stat", "readdir", "readlink", "execute"}, Paths: []string{"/**"}},
	}}}
}

// A run that asks for fewer permissions has fewer. The next one has the runtime's.
func TestPermissionsOfRun(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Permissions: policy.Open(), Env: map[string]string{"OWN": "1", "OTHER": "1"}})
	testPermissionsOfRuns(t, rt)
}

// The same holds for a runtime from a pool, whose first run is parked.
func TestZygotePermissionsOfParkedRun(t *testing.T) {
	if !harness.Needs(t, runtime.FeaturePark) {
		return
	}
	for _, first := range []policy.Permissions{{}, {ChildProcess: denied}} {
		rt := harness.CreateParked(t, runtime.Options{Permissions: policy.Open()})
		res := harness.Run(t, rt, `import { spawnSync } from 'node:child_process'; __return(spawnSync('/bin/true').error?.code ?? 'ok')`, runtime.RunOptions{Permissions: first})
		want := `"ok"`
		if !first.IsZero() {
			want = `"EPERM"`
		}
		if string(res.Value) != want {
			t.Errorf("the first run with %+v: %s, want %s", first, res.Value, want)
		}
	}
	rt := harness.CreateParked(t, runtime.Options{Permissions: policy.Open(), Env: map[string]string{"OWN": "1", "OTHER": "1"}})
	testPermissionsOfRuns(t, rt)
}

// A run with its own permissions sees no process of a later run that it could stop.
func TestZygotePermissionsOfRunMeetNoParked(t *testing.T) {
	if !harness.Needs(t, runtime.FeaturePark) {
		return
	}
	rt := harness.CreateParked(t, runtime.Options{Permissions: policy.Open()})
	res := harness.Run(t, rt, `import { readdirSync } from 'node:fs';
		for (let i = 0; i < 20; i++) {
			for (const pid of readdirSync('/proc').filter(Number).map(Number).filter(p => p != process.pid)) try { process.kill(pid, 'SIGSTOP') } catch {}
			await new Promise(r => setTimeout(r, 5));
		}`, runtime.RunOptions{Permissions: noSpawn})
	if res.ExitCode != 0 {
		t.Errorf("%s", res.Stderr)
	}
	if res = harness.Run(t, rt, `__return(1)`, runtime.RunOptions{Timeout: time.Minute}); string(res.Value) != "1" {
		t.Errorf("the next run: %+v", res)
	}
}

func testPermissionsOfRuns(t *testing.T, rt *runtime.NodeRuntime) {
	t.Helper()
	var victim string
	tries := func(what string, p policy.Permissions, want map[string]string) {
		t.Helper()
		got := attempts(t, rt, runWays, runtime.RunOptions{Permissions: p, Args: []string{victim}})
		wantSame(t, what, runWithout(want), got)
	}
	narrow, landlock := noSpawn, harness.Needs(t, runtime.FeatureLandlock)
	if landlock {
		narrow.Process = processOnly("inspect").Process
	}
	if res := harness.Run(t, rt, `require('fs').writeFileSync('/workspace/kept', '')`, runtime.RunOptions{Name: "make.cjs", Permissions: narrow}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	victim = harness.StartCommand(t, rt, "sh", "-c", "echo $$; sleep 60").First
	for _, tc := range []struct {
		name string
		p    policy.Permissions
		want map[string]string
	}{
		{"nothing", policy.Permissions{}, nil},
		{"network", policy.Permissions{Network: denied}, map[string]string{"listen": "EACCES", "connect": "EACCES"}},
		{"ports", portsOnly("tcp://localhost:7501"), map[string]string{"connect": "EACCES"}},
		{"childProcess", noSpawn, map[string]string{"spawn": "EPERM"}},
		{"signal", processOnly("inspect"), map[string]string{"signal": "EPERM"}},
		{"env", policy.Permissions{Env: denied}, map[string]string{"env": "none"}},
		{"one variable", policy.Permissions{Env: allowing(nil, "OTHER")}, map[string]string{"env": "none"}},
		{"the other variable", policy.Permissions{Env: allowing(nil, "OWN")}, nil},
		{"writing", writingDenied(), map[string]string{"write": "EACCES", "chmod": "EPERM", "rename": "EPERM"}},
		{"chmod", without("chmod"), map[string]string{"chmod": "EPERM"}},
		{"rename", without("rename"), map[string]string{"rename": "EPERM"}},
		{"all files", policy.Permissions{FS: denied}, map[string]string{"read": "EACCES", "write": "EACCES", "list": "EACCES", "chmod": "EPERM", "rename": "EPERM", "spawn": "EACCES"}},
		{"several", policy.Permissions{Network: denied, ChildProcess: denied, Env: denied}, map[string]string{"listen": "EACCES", "connect": "EACCES", "spawn": "EPERM", "env": "none"}},
	} {
		if !landlock && slices.Contains([]string{"ports", "signal", "writing", "rename", "all files"}, tc.name) {
			harness.WantRefusedRun(t, rt, runtime.FeatureLandlock, tc.p)
			continue
		}
		tries(tc.name, tc.p, tc.want)
		tries("after "+tc.name, policy.Permissions{}, nil)
	}
}

// Permissions that allow more than the runtime's are rejected, by the rule that does. So
// are those that cannot be taken from one run alone.
func TestPermissionsOfRunRefused(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, policy.Strict())
	strict := harness.Create(t, runtime.Options{Permissions: policy.Strict()})
	some := harness.CreatePermitted(t, policy.Permissions{
		Network: portsOnly("tcp://localhost:7600").Network, ChildProcess: listing(node).ChildProcess, Process: processOnly("signal").Process,
		FS: policy.Workspace("/workspace").FS,
	})
	open := harness.CreatePermitted(t, policy.Open())
	for _, tc := range []struct {
		name, place string
		rt          *runtime.NodeRuntime
		p           policy.Permissions
	}{
		{"fs", "fs", strict, policy.Permissions{FS: policy.Scope{Default: policy.Allow}}},
		{"network", "network.rules[0]", strict, policy.Permissions{Network: policy.Loopback()}},
		{"childProcess", "childProcess", strict, policy.Permissions{ChildProcess: policy.Scope{Default: policy.Allow}}},
		{"process", "process.rules[0]", strict, processOnly("signal")},
		{"another port", "network.rules[0]", some, portsOnly("tcp://localhost:7601")},
		{"UDP", "network.rules[0]", some, onlyProtocol("udp")},
		{"another program", "childProcess.rules[1]", some, policy.Permissions{ChildProcess: policy.Scope{Rules: []policy.Rule{
			{Mode: policy.Allow, Patterns: []string{node}}, {Mode: policy.Allow, Patterns: []string{busybox}},
		}}}},
		{"inspect", "process.rules[0]", some, processOnly("inspect")},
		{"writing elsewhere", "fs", some, policy.Permissions{FS: policy.Scope{Default: policy.Allow}}},
		{"a list of its own", "childProcess.rules[0]", open, listing(node)},
		{"a folder in a folder", "fs.rules[0].paths[0]", open, without("read", "/workspace/secret/**")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := tc.rt.Run(t.Context(), `1`, runtime.RunOptions{Permissions: tc.p})
			var rule *policy.RuleError
			if !errors.As(err, &rule) || rule.Place != tc.place || !strings.HasPrefix(err.Error(), "gaol: run: option Permissions: ") {
				t.Errorf("%+v, %v, want a refusal of %s", res, err, tc.place)
			}
		})
	}
	var format *policy.FormatError
	_, err := open.Run(t.Context(), `1`, runtime.RunOptions{Permissions: without("read", "relative")})
	if !errors.As(err, &format) || format.Place != "fs.rules[0].paths[0]" {
		t.Errorf("an invalid rule: %v", err)
	}
	_, err = open.Run(t.Context(), `1`, runtime.RunOptions{Permissions: noProcess})
	if !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), "process: inspect") {
		t.Errorf("inspect in a runtime that allows it: %v", err)
	}
	if res := harness.Run(t, strict, `__return(1)`, runtime.RunOptions{Permissions: policy.Strict()}); string(res.Value) != "1" {
		t.Errorf("the same again: %+v", res)
	}
	const spawn = `import { spawnSync } from 'node:child_process'; __return(spawnSync(process.execPath, ['-p', '1']).error?.code ?? 'ok')`
	for want, p := range map[string]policy.Permissions{`"EPERM"`: noSpawn, `"ok"`: {ChildProcess: listing(node).ChildProcess}} {
		if res := harness.Run(t, some, spawn, runtime.RunOptions{Permissions: p}); string(res.Value) != want {
			t.Errorf("of a list: %s, want %s", res.Value, want)
		}
	}
	if res := harness.Run(t, strict, `__return(Object.keys(process.env).length)`, runtime.RunOptions{Permissions: policy.Permissions{Env: policy.Scope{Default: policy.Allow}}}); string(res.Value) != "0" {
		t.Errorf("variables, which are what both pass: %s", res.Value)
	}
}
