package runtime

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/jail"
	"gaol/policy"
)

// TestWritable: what a guest is granted to write in is there from the start.
func TestWritable(t *testing.T) {
	w := policy.World{Own: []string{"/home/node", "/workspace"}, Shared: []string{"/tmp"}}
	allow := func(path string, ops ...policy.Operation) policy.Rule {
		return policy.Rule{Mode: policy.Allow, Operations: ops, Paths: []string{path}}
	}
	all := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	for _, tc := range []struct {
		name  string
		rules []policy.Rule
		want  []jail.Place
	}{
		{"a folder", []policy.Rule{allow("/workspace/a/out/**", all...)}, []jail.Place{{Path: "/workspace/a/out", Tree: true}}},
		{"to be read", []policy.Rule{allow("/workspace/in/**", "read", "readdir")}, nil},
		{"a file", []policy.Rule{allow("/workspace/log", "write")}, []jail.Place{{Path: "/workspace/log"}}},
		{"in a shared folder", []policy.Rule{allow("/tmp/out/**", all...)}, []jail.Place{{Path: "/tmp/out", Tree: true}}},
		{"its own folder", []policy.Rule{allow("/workspace/**", all...)}, nil},
		{"the image's", []policy.Rule{allow("/opt/out/**", all...)}, nil},
		{"two", []policy.Rule{allow("/home/node/.npm/**", all...), allow("/workspace/out/**", all...)}, []jail.Place{{Path: "/workspace/out", Tree: true}, {Path: "/home/node/.npm", Tree: true}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := CheckPermissions(Options{Permissions: policy.Permissions{FS: policy.Scope{Rules: tc.rules}}, AllowDegraded: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, writable(plan.Grants, w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
