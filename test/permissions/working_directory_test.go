package permissions

import (
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// Files of the guest in a working directory among the image's libraries are not loaded as
// libraries.
func TestPermissionOwnAmongLibraries(t *testing.T) {
	noExecute := policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
		{Mode: policy.Deny, Operations: []policy.Operation{"execute"}, Paths: []string{"/**"}},
	}}}
	for name, tc := range map[string]struct {
		p    policy.Permissions
		want string
	}{
		"any": {policy.Permissions{}, "ok"}, "a list": {listing(node), "EACCES"}, "none by fs": {noExecute, "EACCES"},
	} {
		if name != "any" && !harness.Needs(t, runtime.FeatureLandlock) {
			continue
		}
		rt := harness.Create(t, runtime.Options{Permissions: tc.p.Over(policy.Default()), Cwd: "/usr/lib/mine"})
		got := attempts(t, rt, `import { spawnSync } from 'node:child_process'; import fs from 'node:fs';
			await attempt('write', () => { fs.copyFileSync('/usr/bin/busybox', '/usr/lib/mine/true'); fs.chmodSync('/usr/lib/mine/true', 0o755) });
			await attempt('start', () => { const { error } = spawnSync('/usr/lib/mine/true'); if (error) throw error });`, runtime.RunOptions{})
		wantSame(t, name, map[string]string{"write": "ok", "start": tc.want}, got)
	}
}

// A runtime works if its working directory is hidden together with its surroundings.
func TestPermissionCwdHidden(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Cwd: "/var/tmp/own", Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Paths: []string{"/var/**"}}}}}.Over(policy.Default())})
	if res := harness.Run(t, rt, `__return(process.cwd())`, runtime.RunOptions{}); string(res.Value) != `"/var/tmp/own"` {
		t.Errorf("%s: %s", res.Value, res.Stderr)
	}
}
