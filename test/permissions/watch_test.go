package permissions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// A guest that may not list a folder learns no names by watching it.
func TestPermissionWatch(t *testing.T) {
	const watch = `const fs = require('fs');
		let got = 'nothing';
		try { fs.watch('/workspace').on('error', () => {}).close(); got = 'watched' } catch (e) { got = e.code }
		__return(got); setImmediate(() => process.exit())`
	write := allowingOps("write", "stat", "readlink")
	for _, tc := range []struct {
		name              string
		runtime, narrower policy.Permissions
		want              string
	}{
		{"all", policy.Permissions{}, policy.Permissions{}, `"watched"`},
		{"a run without files", policy.Permissions{}, policy.Permissions{FS: denied}, `"EACCES"`},
		{"a letter box", policy.Permissions{FS: write}, policy.Permissions{}, `"EACCES"`},
		{"its own folder only", policy.Workspace("/workspace"), policy.Permissions{}, `"watched"`},
	} {
		if tc.name != "all" && !harness.Needs(t, runtime.FeatureLandlock) {
			continue
		}
		rt := harness.Create(t, runtime.Options{Permissions: tc.runtime.Over(policy.Default())})
		res := harness.Run(t, rt, watch, runtime.RunOptions{Name: "watch.cjs", Permissions: tc.narrower})
		if string(res.Value) != tc.want {
			t.Errorf("%s: %s, want %s: %s", tc.name, res.Value, tc.want, res.Stderr)
		}
		if tc.want != `"EACCES"` {
			continue
		}
		want := []runtime.Denial{seccompDenial(policy.FS, "readdir", "/workspace", "fs.default", 1)}
		if diff := cmp.Diff(want, res.Denials); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// allowingOps allows some operations on the working directory.
func allowingOps(ops ...policy.Operation) policy.Scope {
	return policy.Scope{Default: policy.Deny, Rules: []policy.Rule{{Mode: policy.Allow, Operations: ops, Paths: []string{"/workspace/**"}}}}
}
