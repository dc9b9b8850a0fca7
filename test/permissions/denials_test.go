package permissions

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// without allows everything in the guest's tree but one operation.
func without(op policy.Operation, paths ...string) policy.Permissions {
	if paths == nil {
		paths = []string{"/**"}
	}
	return policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Operations: []policy.Operation{op}, Paths: paths}}}}
}

func seccompDenial(scope string, op policy.Operation, target, rule string, count int64) runtime.Denial {
	return runtime.Denial{Scope: scope, Operation: op, Target: target, Rule: rule, Count: count, Source: runtime.SourceSeccomp}
}

// Each call that the seccomp filter refuses is reported, in order, with its target.
func TestPermissionDenials(t *testing.T) {
	spawned := func(target string, count int64) runtime.Denial {
		return seccompDenial(policy.ChildProcess, "spawn", target, "childProcess.default", count)
	}
	for _, tc := range []struct {
		name    string
		p       policy.Permissions
		program string // for Node
		command []string
		want    []runtime.Denial
		needs   runtime.Feature
	}{
		{
			name: "sockets", p: noNetwork, program: `import net from 'node:net'; import dgram from 'node:dgram'; import os from 'node:os'; import { once } from 'node:events';
				for (let i = 0; i < 3; i++) await once(net.connect(80, '127.0.0.1'), 'connect').catch(() => {});
				await once(dgram.createSocket('udp6').bind(0), 'listening').catch(() => {});
				try { os.networkInterfaces() } catch {}
				await once(net.connect(80, '::1'), 'connect').catch(() => {}); await once(net.connect(80, '127.0.0.1'), 'connect').catch(() => {});`,
			want: []runtime.Denial{socket("AF_INET SOCK_STREAM", 4), socket("AF_INET6 SOCK_DGRAM", 1), socket("AF_INET6 SOCK_STREAM", 1)},
		},
		{name: "sockets of a command", p: noNetwork, command: []string{"net", "get", "80"}, want: []runtime.Denial{socket("AF_INET SOCK_STREAM", 1)}},
		{name: "UDP", p: onlyProtocol("tcp"), command: []string{"net", "local"}, want: []runtime.Denial{socket("AF_INET SOCK_DGRAM", 1), socket("AF_INET6 SOCK_DGRAM", 1)}},
		{name: "TCP", p: onlyProtocol("udp"), command: []string{"net", "local"}, want: []runtime.Denial{socket("AF_INET SOCK_STREAM", 1), socket("AF_INET6 SOCK_STREAM", 1)}},
		{
			name: "ways past ports", p: portsOnly("tcp://localhost:7800"), command: []string{"net", "ways", "7801"}, // only audit reports denials of Landlock
			want: pastPorts(), needs: runtime.FeatureLandlock,
		},
		{
			name: "a child's", p: noNetwork, program: `import { execFileSync } from 'node:child_process'; execFileSync(process.argv[2], ['get', '80']); execFileSync(process.argv[2], ['get', '80'])`,
			want: []runtime.Denial{socket("AF_INET SOCK_STREAM", 2)},
		},
		{
			name: "a worker's", p: noNetwork, program: `import { Worker } from 'node:worker_threads'; new Worker("require('net').connect(80, '127.0.0.1').on('error', () => {})", { eval: true })`,
			want: []runtime.Denial{socket("AF_INET SOCK_STREAM", 1)},
		},
		{name: "forks", p: noSpawn, program: `import { spawnSync } from 'node:child_process'; for (let i = 0; i < 5; i++) spawnSync('true')`, want: []runtime.Denial{spawned("", 5)}},
		{name: "many", p: noSpawn, command: []string{"spawn", "hammer", "1500"}, want: []runtime.Denial{spawned("", 1500)}, needs: runtime.FeatureExec},
		{
			name: "programs", p: noSpawn, command: []string{"spawn", "execve", "execveat", "execveat-fd", "execve-self", "execve", "clone3", "thread"},
			want: []runtime.Denial{spawned("/bin/sh", 3), spawned("", 1), spawned("/proc/self/exe", 1)}, needs: runtime.FeatureExec,
		},
		{name: "memory files", p: listing(node, "/workspace/**"), command: []string{"spawn", "memfd", "memfd-exec"}, want: []runtime.Denial{spawned("", 2)}, needs: runtime.FeatureLandlock},
		{name: "limits", p: noProcess, command: []string{"proc", "bystand", "1"}, want: []runtime.Denial{seccompDenial(policy.Process, "signal", "", "process.default", 1)}, needs: runtime.FeatureLandlock},
		{
			name: "chmod", p: without("chmod"), program: `import fs from 'node:fs'; fs.writeFileSync('a', '');
				for (const f of [() => fs.chmodSync('a', 0o600), () => fs.chmodSync('/workspace/a', 0o600), () => fs.utimesSync('/workspace/a', 1, 1), () => fs.chmodSync('/workspace/a', 0o600), () => fs.fchmodSync(fs.openSync('a'), 0o600)]) try { f() } catch {}`,
			want: []runtime.Denial{
				seccompDenial(policy.FS, "chmod", "a", "fs.rules[0]", 1), seccompDenial(policy.FS, "chmod", "/workspace/a", "fs.rules[0]", 3), seccompDenial(policy.FS, "chmod", "", "fs.rules[0]", 1),
			},
		},
		{
			name: "rename", p: without("rename"), program: `import fs from 'node:fs'; fs.writeFileSync('a', '');
				for (const f of [() => fs.renameSync('a', 'b'), () => fs.linkSync('/workspace/a', 'c')]) try { f() } catch {}`,
			want:  []runtime.Denial{seccompDenial(policy.FS, "rename", "a", "fs.rules[0]", 1), seccompDenial(policy.FS, "rename", "/workspace/a", "fs.rules[0]", 1)},
			needs: runtime.FeatureLandlock,
		},
		{name: "nothing", program: `import fs from 'node:fs'; import net from 'node:net'; import { execFileSync } from 'node:child_process'; fs.writeFileSync('a', ''); fs.chmodSync('a', 0o600); execFileSync('true'); net.connect(80, '127.0.0.1').on('error', () => {})`},
		{name: "nothing of a command", command: []string{"spawn", "fork", "execve"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.needs != "" {
				harness.Require(t, tc.needs)
			}
			rt := harness.CreatePermitted(t, tc.p)
			at := "/workspace/net"
			if tc.p.FS.IsZero() { // without chmod no file becomes executable
				at = harness.Install(t, rt, "net")
			}
			var res *runtime.Result
			if tc.command != nil {
				name := harness.Install(t, rt, tc.command[0])
				var err error
				if res, err = rt.Command(t.Context(), name, tc.command[1:], runtime.RunOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				res = harness.Run(t, rt, tc.program, runtime.RunOptions{Args: []string{at}})
			}
			wantSame(t, "denials", harness.Denials(tc.want...), res.Denials)
			if res.ExitCode != 0 || res.Truncated.Denials {
				t.Errorf("exit code %d, truncated %v: %s", res.ExitCode, res.Truncated, res.Stderr)
			}
		})
	}
}

// Reported denials are bounded and valid text, however many calls a guest makes and
// whatever names it uses.
func TestPermissionDenialsAreBounded(t *testing.T) {
	harness.RequireDenials(t)
	rt := harness.CreatePermitted(t, without("chmod"))
	res := harness.Run(t, rt, `import fs from 'node:fs'; for (let i = 0; i < 200; i++) try { fs.chmodSync('/tmp/' + i, 0o600) } catch {}; try { fs.chmodSync('/tmp/5', 0o600) } catch {}`, runtime.RunOptions{})
	if len(res.Denials) != 64 || !res.Truncated.Denials {
		t.Errorf("%d denials, truncated %v", len(res.Denials), res.Truncated.Denials)
	}
	for i, d := range res.Denials {
		want := int64(1)
		if i == 5 {
			want = 2 // denials that are listed are still counted
		}
		if d.Target != fmt.Sprintf("/tmp/%d", i) || d.Count != want {
			t.Errorf("number %d: %+v", i, d)
		}
	}

	res = harness.Run(t, rt, `import fs from 'node:fs';
		for (const name of [Buffer.alloc(4000, 'x'), Buffer.from('\u20ac'.repeat(100)), Buffer.from([47, 255, 254, 128]), Buffer.from('\x1b[2J\n\r"'), Buffer.alloc(300, 255)])
			try { fs.chmodSync(name, 0o600) } catch {}`, runtime.RunOptions{})
	var targets []string
	for _, d := range res.Denials {
		targets = append(targets, d.Target)
		if !utf8.ValidString(d.Target) || len(d.Target) > 256 || d.Rule != "fs.rules[0]" {
			t.Errorf("%+v", d)
		}
	}
	if len(targets) != 5 || targets[0] != strings.Repeat("x", 256) || targets[1] != strings.Repeat("\u20ac", 85) || targets[3] != "\x1b[2J\n\r\"" {
		t.Errorf("targets %q", targets)
	}

	none := harness.CreatePermitted(t, noSpawn)
	call := harness.Install(t, none, "call")
	const nowhere = "0x10" // not the address of a path
	res, err := none.Command(t.Context(), call, []string{fmt.Sprintf("%d,%s,0,0", unix.SYS_EXECVE, nowhere), fmt.Sprintf("%d,-1,0,0", unix.SYS_EXECVE)}, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "1\n1\n" {
		t.Errorf("%+v, %v", res, err)
	}
	wantSame(t, "no path", []runtime.Denial{seccompDenial(policy.ChildProcess, "spawn", "", "childProcess.default", 2)}, res.Denials)
}

// A program's last output is reported as a denial only if the permissions do deny it.
func TestPermissionDenialsHint(t *testing.T) {
	rt := harness.CreatePermitted(t, policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
		{Mode: policy.Deny, Paths: []string{"/workspace/secret/**"}},
		{Mode: policy.Deny, Paths: []string{"/workspace/fixed/**"}, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}},
	}}})
	harness.Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync('/tmp/mine', '', { mode: 0 })`, runtime.RunOptions{})
	hint := func(op policy.Operation, target, rule string) []runtime.Denial {
		return []runtime.Denial{{Scope: policy.FS, Operation: op, Target: target, Rule: rule, Count: 1, Source: runtime.SourceStderr}}
	}
	const words = `process.stderr.write("Error: EACCES: permission denied, %s '%s'\n\nNode.js v24.0.0\n"); process.exitCode = %d`
	for _, tc := range []struct {
		name, code string
		want       []runtime.Denial
	}{
		{"denied", `import fs from 'node:fs'; fs.readFileSync('/workspace/secret/key')`, hint("read", "/workspace/secret/key", "fs.rules[0]")},
		{"roundabout", `import fs from 'node:fs'; fs.readFileSync('/workspace/secret/./key')`, hint("read", "/workspace/secret/./key", "fs.rules[0]")},
		{"relative", `import fs from 'node:fs'; fs.readFileSync('secret/key')`, hint("read", "/workspace/secret/key", "fs.rules[0]")},
		{"of a part", `import fs from 'node:fs'; fs.mkdirSync('/workspace/fixed/x')`, hint("create_dir", "/workspace/fixed/x", "fs.rules[1]")},
		{"caught", `import fs from 'node:fs'; try { fs.readFileSync('/workspace/secret/key') } catch (e) { console.error(e) }`, nil},
		{"by its own mode", `import fs from 'node:fs'; fs.readFileSync('/tmp/mine')`, nil},
		{"another error", `import fs from 'node:fs'; fs.readFileSync('/workspace/none')`, nil},
		{"made up of an allowed path", fmt.Sprintf(words, "open", "/workspace/other", 1), nil},
		{"made up of an allowed operation", fmt.Sprintf(words, "scandir", "/workspace/fixed", 1), nil},
		{"made up of a relative path", fmt.Sprintf(words, "open", "other/key", 1), nil},
		{"made up, no failure", fmt.Sprintf(words, "open", "/workspace/secret/key", 0), nil},
		{"made up of a way out", fmt.Sprintf(words, "open", "/workspace/secret/../other", 1), nil},
		{"made up of a call", fmt.Sprintf(words, "explode", "/workspace/secret/key", 1), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := harness.Run(t, rt, tc.code, runtime.RunOptions{})
			wantSame(t, string(res.Stderr), tc.want, res.Denials)
		})
	}
}

// Denials are reported for the run that caused them, also of concurrent and parked runs.
func TestPermissionDenialsPerRun(t *testing.T) {
	rt := harness.CreatePermitted(t, without("chmod"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			path := fmt.Sprintf("/tmp/of-%d", i)
			res := harness.Run(t, rt, `import fs from 'node:fs'; for (let i = 0; i < 20; i++) { try { fs.chmodSync(process.argv[2], 0o600) } catch {}; await new Promise(r => setTimeout(r, 1)) }`,
				runtime.RunOptions{Args: []string{path}})
			wantSame(t, path, harness.Denials(seccompDenial(policy.FS, "chmod", path, "fs.rules[0]", 20)), res.Denials)
		})
	}
	all.Wait()
	if res := harness.Run(t, rt, ``, runtime.RunOptions{}); res.Denials != nil {
		t.Errorf("a clean run: %+v", res.Denials)
	}
}

func TestZygotePermissionDenialsOfParked(t *testing.T) {
	if !harness.Needs(t, runtime.FeaturePark) {
		return
	}
	rt := harness.CreateParked(t, runtime.Options{Permissions: noSpawn})
	for _, which := range []string{"parked", "next"} {
		res := harness.Run(t, rt, `import { spawnSync } from 'node:child_process'; spawnSync('true'); spawnSync('true')`, runtime.RunOptions{})
		wantSame(t, which, harness.Denials(seccompDenial(policy.ChildProcess, "spawn", "", "childProcess.default", 2)), res.Denials)
	}
}

// pastPorts are the denials of attempts to reach a port that is not listed.
func pastPorts() []runtime.Denial {
	connects := seccompDenial(policy.Network, "connect", "", "network.default", 4)
	return []runtime.Denial{socket("AF_INET SOCK_DGRAM", 3), connects, socket("AF_INET SOCK_STREAM", 3), socket("AF_INET6 SOCK_STREAM", 1)}
}

func socket(kind string, count int64) runtime.Denial {
	return seccompDenial(policy.Network, "socket", kind, "network.default", count)
}
