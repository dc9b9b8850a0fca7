package runtime

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime/internal/enforce"
)

// CheckPermissions and Create agree.
func TestCheckPermissions(t *testing.T) {
	secret := policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Paths: []string{"/srv/secret/**"}}}}}
	list := policy.Permissions{ChildProcess: policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"/bin/true"}}}}}
	listed := policy.Permissions{ChildProcess: policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{enforce.NodePath}}}}, FS: policy.Scope{Default: policy.Deny}}
	for _, tc := range []struct {
		name string
		o    Options
		says string // "": accepted
	}{
		{"nothing", Options{}, ""},
		{"strict", Options{Permissions: policy.Strict()}, ""},
		{"workspace", Options{Permissions: policy.Workspace("/srv"), Cwd: "/srv"}, ""},
		{"a hidden folder", Options{Permissions: secret, Cwd: "/srv"}, ""},
		{"a way out", Options{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Allow}}}, ""},
		{"Node is started", Options{Permissions: list, Launcher: LauncherExec}, "is not among the programs"},
		{"Node is started, and no file may be", Options{Permissions: listed, Launcher: LauncherExec}, "is not among the programs"},
		{"Node is forked", Options{Permissions: list}, ""},
		{"a launcher", Options{Launcher: 7}, "option Launcher"},
		{"a folder", Options{Cwd: "srv"}, "srv"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := CheckPermissions(tc.o)
			s, resolveErr := tc.o.resolve()
			if plan != nil {
				err = nil // Create rejects it later, as the kernel cannot enforce it; the plan is complete
			}
			if (err == nil) != (resolveErr == nil) {
				t.Errorf("got %v, Create returned %v", err, resolveErr)
			}
			if tc.says != "" {
				if plan != nil || err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, %v; want an error with %q", plan, err, tc.says)
				}
				return
			}
			if diff := cmp.Diff(s.plan, plan, cmp.Comparer(func(a, b *policy.Egress) bool { return reflect.DeepEqual(a, b) })); diff != "" {
				t.Errorf("the plan (-Create's +got):\n%s", diff)
			}
		})
	}
}

// Rules that the kernel cannot enforce are refused, unless the caller allows degradation.
func TestSupported(t *testing.T) {
	if plan, err := CheckPermissions(Options{Permissions: policy.Strict()}); plan == nil {
		t.Errorf("no plan: %v", err)
	}
	if _, err := CheckPermissions(Options{Permissions: policy.Strict(), AllowDegraded: true}); err != nil {
		t.Errorf("degraded: %v", err)
	}
}
