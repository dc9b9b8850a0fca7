package enforce

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/jail"
	"gaol/policy"
	"gaol/vfs"
)

func lower(p policy.Permissions) (*policy.Plan, error) {
	return policy.Lower(p.Clone().Over(policy.Default()), Tree{Cwd: vfs.Workspace}.World())
}

// Folders that a guest may write to exist from the start.
func TestGrantedPlaces(t *testing.T) {
	w := policy.World{Own: []string{"/home/node", "/workspace"}, Shared: []string{"/tmp"}}
	allow := func(path string, ops ...policy.Operation) policy.Rule {
		return policy.Rule{Mode: policy.Allow, Operations: ops, Paths: []string{path}}
	}
	tree := func(paths ...string) (list []jail.Place) {
		for _, p := range paths {
			list = append(list, jail.Place{Path: p, Tree: true})
		}
		return list
	}
	all := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	for _, tc := range []struct {
		name  string
		rules []policy.Rule
		own   []jail.Place
		kept  []jail.Place
	}{
		{"a folder", []policy.Rule{allow("/workspace/a/out/**", all...)}, tree("/workspace/a/out"), nil},
		{"to be read", []policy.Rule{allow("/workspace/in/**", "read", "readdir")}, nil, tree("/workspace/in")},
		{"a file", []policy.Rule{allow("/workspace/log", "write")}, []jail.Place{{Path: "/workspace/log"}}, nil},
		{"in a shared folder", []policy.Rule{allow("/tmp/out/**", all...)}, tree("/tmp/out"), nil},
		{"its own folder", []policy.Rule{allow("/workspace/**", all...)}, nil, nil},
		{"the image's", []policy.Rule{allow("/opt/out/**", all...)}, nil, nil},
		{"two", []policy.Rule{allow("/home/node/.npm/**", all...), allow("/workspace/out/**", all...)}, tree("/workspace/out", "/home/node/.npm"), nil},
		{"in what is hidden", []policy.Rule{allow("/**"), {Mode: policy.Deny, Paths: []string{"/workspace/**"}}, allow("/workspace/out/**")}, tree("/workspace/out"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := lower(policy.Permissions{FS: policy.Scope{Rules: tc.rules}})
			if err != nil {
				t.Fatal(err)
			}
			own, kept := grantedPlaces(plan, w)
			if diff := cmp.Diff([][]jail.Place{tc.own, tc.kept}, [][]jail.Place{own, kept}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The required Landlock versions are those in the table of package policy.
func TestKernelNeeded(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		abi        int
	}{
		{"default", `{}`, 0},
		{"open", `{"network":{"rules":[{"mode":"allow","patterns":["tcp://localhost:*","udp://localhost:*"]}]}}`, 0},
		{"all hidden", `{"fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]}]}}`, 0},
		{"read-only", `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["write","create_dir","rm","rename","symlink","chmod","truncate"],"paths":["/workspace/in/**"]}]}}`, 0},
		{"noexec", `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["execute"],"paths":["/tmp/**"]}]}}`, 0},
		{"no read", `{"fs":{"rules":[{"mode":"allow","operations":["write","create_dir","rm","rename","symlink","chmod","truncate"],"paths":["/workspace/**"]}]}}`, 3},
		{"ports", `{"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}}`, 4},
		{"no spawn", `{"childProcess":"deny"}`, 0},
		{"programs", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/local/bin/node"]}]}}`, 3},
		{"signal", `{"process":{"default":"allow","rules":[{"mode":"deny","operations":["signal"]}]}}`, 6},
		{"inspect", `{"process":{"default":"allow","rules":[{"mode":"deny","operations":["inspect"]}]}}`, 2},
		{"env", `{"env":"deny"}`, 0},
		{"workspace", marshal(t, policy.Workspace("/workspace")), 3},
		{"strict", marshal(t, policy.Strict()), 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := policy.Parse([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := lower(p)
			if err != nil {
				t.Fatal(err)
			}
			abi := 0
			if r := ruleset(plan); r != nil {
				abi, _, _ = r.Needs()
			}
			if abi != tc.abi {
				t.Errorf("needs ABI %d, want %d", abi, tc.abi)
			}
		})
	}
}

func marshal(t *testing.T, p policy.Permissions) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
