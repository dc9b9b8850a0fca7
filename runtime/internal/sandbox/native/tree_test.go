package native

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

// Folders that a guest may write to exist from the start.
func TestGrantedPlaces(t *testing.T) {
	w := policy.World{Own: []string{"/home/node", "/workspace"}, Shared: []string{"/tmp"}}
	allow := func(path string, ops ...policy.Operation) policy.Rule {
		return policy.Rule{Mode: policy.Allow, Operations: ops, Paths: []string{path}}
	}
	tree := func(paths ...string) (list []policy.Place) {
		for _, p := range paths {
			list = append(list, policy.Place{Path: p, Tree: true})
		}
		return list
	}
	all := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	for _, tc := range []struct {
		name  string
		rules []policy.Rule
		own   []policy.Place
		kept  []policy.Place
	}{
		{"a folder", []policy.Rule{allow("/workspace/a/out/**", all...)}, tree("/workspace/a/out"), nil},
		{"to be read", []policy.Rule{allow("/workspace/in/**", "read", "readdir")}, nil, tree("/workspace/in")},
		{"a file", []policy.Rule{allow("/workspace/log", "write")}, []policy.Place{{Path: "/workspace/log"}}, nil},
		{"in a shared folder", []policy.Rule{allow("/tmp/out/**", all...)}, tree("/tmp/out"), nil},
		{"its own folder", []policy.Rule{allow("/workspace/**", all...)}, nil, nil},
		{"the image's", []policy.Rule{allow("/opt/out/**", all...)}, nil, nil},
		{"two", []policy.Rule{allow("/home/node/.npm/**", all...), allow("/workspace/out/**", all...)}, tree("/workspace/out", "/home/node/.npm"), nil},
		{"in what is hidden", []policy.Rule{allow("/**"), {Mode: policy.Deny, Paths: []string{"/workspace/**"}}, allow("/workspace/out/**")}, tree("/workspace/out"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := policy.Lower(policy.Permissions{FS: policy.Scope{Rules: tc.rules}}.Over(policy.Default()), w)
			if err != nil {
				t.Fatal(err)
			}
			own, kept := grantedPlaces(plan, w)
			if diff := cmp.Diff([][]policy.Place{tc.own, tc.kept}, [][]policy.Place{own, kept}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
