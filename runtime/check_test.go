package runtime

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/jail/landlock"
	"gaol/policy"
)

// TestCheckPermissions: it finds what Create does.
func TestCheckPermissions(t *testing.T) {
	secret := policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Paths: []string{"/srv/secret/**"}}}}}
	list := policy.Permissions{ChildProcess: policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"/bin/true"}}}}}
	listed := policy.Permissions{ChildProcess: policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{nodePath}}}}, FS: policy.Scope{Default: policy.Deny}}
	for _, tc := range []struct {
		name string
		o    Options
		says string // "": accepted
	}{
		{"nothing", Options{}, ""},
		{"strict", Options{Permissions: policy.Strict()}, ""},
		{"workspace", Options{Permissions: policy.Workspace("/srv"), Cwd: "/srv"}, ""},
		{"a hidden folder", Options{Permissions: secret, Cwd: "/srv"}, ""},
		{"a way out", Options{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Allow}}}, "no way out"},
		{"Node is started", Options{Permissions: list, Launcher: LauncherExec}, "is not among the programs"},
		{"Node is started, and no file may be", Options{Permissions: listed, Launcher: LauncherExec}, "is not among the programs"},
		{"Node is forked", Options{Permissions: list}, ""},
		{"a launcher", Options{Launcher: 7}, "option Launcher"},
		{"a folder", Options{Cwd: "srv"}, "srv"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := CheckPermissions(tc.o)
			s, settleErr := tc.o.settle()
			if _, old := errors.AsType[*landlock.ABIError](err); old {
				err = nil // Create finds out later that the kernel cannot enforce it; the plan is complete
			}
			if (err == nil) != (settleErr == nil) {
				t.Errorf("got %v, but of Create %v", err, settleErr)
			}
			if tc.says != "" {
				if plan != nil || err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, %v; want an error with %q", plan, err, tc.says)
				}
				return
			}
			if diff := cmp.Diff(s.plan, plan); diff != "" {
				t.Errorf("the plan (-Create's +got):\n%s", diff)
			}
		})
	}
}

// TestHoldable: what the kernel lacks is refused, unless that is asked for.
func TestHoldable(t *testing.T) {
	if _, err := landlock.ABI(); err != nil {
		t.Skip(err)
	}
	plan, err := CheckPermissions(Options{Permissions: policy.Strict()})
	if err != nil {
		if _, ok := errors.AsType[*landlock.ABIError](err); !ok || plan == nil {
			t.Errorf("got %v, %v", plan, err)
		}
	}
	if err := holdable(plan, true); err != nil {
		t.Errorf("degraded: %v", err)
	}
	if err := holdable(&policy.Plan{}, false); err != nil {
		t.Errorf("of a plan without Landlock: %v", err)
	}
}

// TestHintBeyondCapture: what a program said last counts, also where it was not kept.
func TestHintBeyondCapture(t *testing.T) {
	const last = "Error: EACCES: permission denied, open '/etc/passwd'\n    at x\n\nNode.js v24.0.0\n"
	for _, tc := range []struct {
		name       string
		code       int
		kept, tail string
		want       int
	}{
		{"kept", 1, last, "", 1},
		{"not kept", 1, "n", "oise\n" + last, 1},
		{"cut in two", 1, last[:20], last[20:], 1},
		{"not the last", 1, last, strings.Repeat("x", maxTail), 0},
		{"no failure", 0, last, "", 0},
		{"from its folder", 1, strings.Replace(last, "/etc/", "../etc/", 1), "", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := denials{permissions: policy.Strict(), dir: "/workspace"}
			got, _ := d.list(&Result{ExitCode: tc.code, Stderr: []byte(tc.kept)}, []byte(tc.tail))
			if len(got) != tc.want || tc.want == 1 && (got[0].Target != "/etc/passwd" || got[0].Rule != "fs.default") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
