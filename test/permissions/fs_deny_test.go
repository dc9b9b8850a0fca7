package permissions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// Under permissions that hide nearly everything, programs see only what Node needs.
func TestPermissionFSWorldHidden(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, policy.Strict(), permissions(t, `{"fs":"deny"}`))
	const look = `import fs from 'node:fs';
		const codes = {}, t = (name, f) => { try { codes[name] = String(f() ?? '') } catch (e) { codes[name] = e.code } };
		for (const dir of ['/', '/etc', '/usr', '/usr/bin', '/workspace', '/tmp', '/home', '/home/node', '/dev', '/dev/shm', '/usr/local/bin', '/var', '/opt', '/root']) {
			t('list ' + dir, () => fs.readdirSync(dir).length + ' names');
			t('stat ' + dir, () => fs.statSync(dir).isDirectory());
			t('write in ' + dir, () => fs.writeFileSync(dir + '/new', 'x'));
			t('make in ' + dir, () => fs.mkdirSync(dir + '/new'));
		}
		for (const file of ['/etc/passwd', '/etc/group', '/etc/hosts', '/usr/bin/busybox', '/bin/sh', '/usr/bin/env', '/usr/local/bin/npm', '/proc/self/root/etc/group', '/usr/../etc/group']) {
			t('read ' + file, () => fs.readFileSync(file).length > 0);
			t('write ' + file, () => fs.appendFileSync(file, ''));
		}
		t('size of /etc/group', () => fs.statSync('/etc/group').size);
		t('link /bin', () => fs.readlinkSync('/bin'));
		t('cwd', () => process.cwd());
		__return(codes)`
	free := harness.Create(t, runtime.Options{})
	all := value[map[string]string](t, free, look, runtime.RunOptions{})
	for name, want := range map[string]string{"list /etc": "names", "read /etc/group": "true", "link /bin": "usr/bin", "write in /workspace": ""} {
		if !strings.HasSuffix(all[name], want) {
			t.Errorf("where all is allowed, %s: %s: this test proves nothing", name, all[name])
		}
	}
	for name, tc := range map[string]struct {
		policy policy.Permissions
		want   map[string]string // other than EACCES
	}{
		"strict":              {policy.Strict(), nil},
		"nothing":             {permissions(t, `{"fs":"deny"}`), nil},
		"one file":            {fsRules(t, "deny", `{"mode":"allow","operations":["read"],"paths":["/etc/passwd"]}`), map[string]string{"read /etc/passwd": "true"}},
		"reading a workspace": {fsRules(t, "deny", `{"mode":"allow","operations":["read","readdir"],"paths":["/workspace/**"]}`), map[string]string{"list /workspace": "0 names"}},
		"a workspace": {fsRules(t, "deny", `{"mode":"allow","paths":["/workspace/**"]}`),
			map[string]string{"list /workspace": "0 names", "write in /workspace": "", "make in /workspace": "EEXIST"}},
	} {
		t.Run(name, func(t *testing.T) {
			rt := harness.Create(t, runtime.Options{Permissions: tc.policy})
			want := map[string]string{}
			for name := range all {
				want[name] = "EACCES"
				if strings.HasPrefix(name, "stat ") {
					want[name] = "true" // folders of the image are visible
				}
			}
			want["read /bin/sh"], want["write /bin/sh"] = "ENOTDIR", "ENOTDIR" // an empty file hides the link
			want["size of /etc/group"], want["link /bin"], want["cwd"] = "0", "EINVAL", "/workspace"
			for name, code := range tc.want {
				want[name] = code
			}
			if diff := cmp.Diff(want, value[map[string]string](t, rt, look, runtime.RunOptions{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// worked is what testdata/work.mjs returns.
var worked = map[string]string{"modules": "all", "worker": "4", "WebAssembly": "42", "Intl": "Januar", "crypto": "64", "keys": "public", "scrypt": "16", "fetch": "hello", "memory": "true",
	"cpus": "true", "report": "string", "heap": "true", "vm": "42", "zlib": "true", "timers": "slept", "eval": "7", "stack": "true", "compile": "true", "streams": "3"}

// Node starts and works with the least permissions.
func TestPermissionNodeWorks(t *testing.T) {
	for name, p := range map[string]policy.Permissions{
		"default": {}, "strict": policy.Strict(), "workspace": policy.Workspace("/workspace"), "no files": permissions(t, `{"fs":"deny"}`),
		"one file": fsRules(t, "deny", `{"mode":"allow","operations":["read"],"paths":["/etc/passwd"]}`),
	} {
		t.Run(name, func(t *testing.T) {
			if name != "default" {
				harness.Require(t, runtime.FeatureLandlock, p)
			}
			rt := harness.Create(t, runtime.Options{Permissions: p})
			if diff := cmp.Diff(worked, value[map[string]string](t, rt, source(t, "work.mjs"), runtime.RunOptions{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			res := harness.Run(t, rt, `console.log(1); console.error(2); throw new Error('thrown')`, runtime.RunOptions{})
			if res.ExitCode != 1 || string(res.Stdout) != "1\n" || !strings.Contains(string(res.Stderr), "Error: thrown") {
				t.Errorf("a program that throws: %d, %s%s", res.ExitCode, res.Stdout, res.Stderr)
			}
		})
	}
}

// The same holds for a run with the least permissions in a runtime with all of them.
func TestPermissionNodeWorksNarrowed(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, permissions(t, `{"fs":"deny"}`))
	rt := harness.Create(t, runtime.Options{})
	for name, p := range map[string]policy.Permissions{
		"no files": permissions(t, `{"fs":"deny"}`), "no files and programs": permissions(t, `{"fs":"deny","childProcess":"deny","network":"deny"}`),
		"one file": fsRules(t, "deny", `{"mode":"allow","operations":["read"],"paths":["/etc/passwd"]}`),
	} {
		if diff := cmp.Diff(worked, value[map[string]string](t, rt, source(t, "work.mjs"), runtime.RunOptions{Permissions: p})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// If files are hidden, programs cannot be found, even if starting them is allowed.
func TestPermissionFSDeniedWithPrograms(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, permissions(t, `{"fs":"deny"}`))
	rt := harness.Create(t, runtime.Options{Permissions: permissions(t, `{"fs":"deny"}`)})
	got := value[[]string](t, rt, `import { spawnSync } from 'node:child_process';
		__return(['/usr/bin/busybox', '/bin/sh', 'sh', '/lib64/ld-linux-x86-64.so.2', '/usr/bin/env'].map(p => spawnSync(p, ['true']).error?.code ?? 'started'))`, runtime.RunOptions{})
	if diff := cmp.Diff([]string{"EACCES", "ENOTDIR", "EACCES", "started", "EACCES"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
