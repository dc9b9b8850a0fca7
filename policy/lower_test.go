package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var world = World{
	Own:    []string{"/home/node", "/workspace"},
	Shared: []string{"/tmp"},
	Needed: []Need{
		{Path: "/usr/bin/node", Operations: []Operation{"read", "execute"}, Reason: "Node itself"},
		{Path: "/lib", Tree: true, Operations: []Operation{"read", "readdir", "execute"}, Loader: true, Reason: "its libraries"},
		{Path: "/dev/null", Operations: []Operation{"read", "write"}, Reason: "standard input"},
	},
}

func tree(path string) Place { return Place{path, true} }
func file(path string) Place { return Place{path, false} }

func ops(names string) []Operation {
	var list []Operation
	for name := range strings.FieldsSeq(names) {
		list = append(list, Operation(name))
	}
	return list
}

const (
	allLandlock = "read write readdir create_dir rm rename symlink truncate execute"
	looking     = "read readdir execute"
	makes       = "write create_dir rm rename symlink truncate"
	writes      = `"write","create_dir","rm","rename","symlink","chmod","truncate"`
)

// Needs refer to files of the image: a folder of the guest inside a needed folder is like
// any other.
func TestNeedEndsAtOwnFolder(t *testing.T) {
	own := world
	own.Own = append([]string{"/lib/mine"}, world.Own...)
	noExecute := `{"default":"allow","rules":[{"mode":"deny","operations":["execute"],"paths":["/**"]}]}`
	for name, text := range map[string]string{
		"execute":    `{"fs":` + noExecute + `}`,
		"at a place": `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["execute"],"paths":["/lib/mine/**"]}]}}`,
		"programs":   `{"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/bin/node"]}]}}`,
	} {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := Lower(p, own)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if enforced(plan, tree("/lib/mine"))&executeSet != 0 || enforced(plan, tree("/lib"))&executeSet == 0 {
			t.Errorf("%s: %+v", name, plan)
		}
	}
	own.Own[0] = "/lib"
	p := Permissions{FS: Scope{Default: Allow, Rules: []Rule{{Mode: Deny, Operations: ops("execute"), Paths: []string{"/**"}}}}}
	var rule *RuleError
	if _, err := Lower(p, own); !errors.As(err, &rule) || !strings.Contains(rule.Why, "the guest's own") {
		t.Errorf("where libraries are: %v", err)
	}
	if _, err := Lower(Strict(), own); err != nil { // nothing can be created there
		t.Error(err)
	}
}

func TestLowerFS(t *testing.T) {
	needs := func(first ...Grant) []Grant {
		return append(first, Grant{tree("/lib"), ops(looking)}, Grant{file("/dev/null"), ops("read write")}, Grant{file("/usr/bin/node"), ops("read execute")})
	}
	tests := []struct {
		name, fs string
		want     Plan
	}{
		{"allow", `"allow"`, Plan{}},
		{"deny", `"deny"`, Plan{
			Restricts: true, Hide: []Place{tree("/")}, Grants: needs(),
			Show:       []Place{tree("/lib"), file("/dev/null"), file("/usr/bin/node")},
			Sealed:     []string{"/workspace", "/home/node"},
			NoMetadata: true, NoRename: true,
		}},
		{"allow all by a rule", `{"rules":[{"mode":"allow","paths":["/**"]}]}`, Plan{}},
		{"write below one folder", `{"default":"allow","rules":[
			{"mode":"deny","operations":[` + writes + `],"paths":["/**"]},
			{"mode":"allow","operations":[` + writes + `],"paths":["/workspace/**"]}]}`, Plan{
			Restricts: true, Sealed: []string{"/home/node"},
			Grants: []Grant{{tree("/"), ops(looking)}, {tree("/workspace"), ops(makes)}, {file("/dev/null"), ops("write")}},
		}},
		{"hidden in an allowed tree", `{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/a/secret/**"]}]}`, Plan{
			Hide: []Place{tree("/workspace/a/secret")}, Pinned: []string{"/workspace/a"},
		}},
		{"every folder on the way that could be moved is pinned", `{"default":"allow","rules":[{"mode":"deny","paths":["/tmp/a/b/c","/opt/a/b/**"]}]}`, Plan{
			Hide: []Place{tree("/opt/a/b"), file("/tmp/a/b/c")}, Pinned: []string{"/tmp/a", "/tmp/a/b"},
		}},
		{"shown inside a hidden folder of an allowed tree", `{"default":"allow","rules":[
			{"mode":"deny","paths":["/workspace/a/**"]},{"mode":"allow","paths":["/workspace/a/b/**"]}]}`, Plan{
			Hide: []Place{tree("/workspace/a")}, Show: []Place{tree("/workspace/a/b")},
		}},
		{"a grant in a folder where folders can be renamed", `{"default":"allow","rules":[
			{"mode":"deny","operations":["execute","chmod"],"paths":["/**"]},{"mode":"allow","operations":["execute"],"paths":["/workspace/a/bin/**"]}]}`, Plan{
			Restricts: true, NoMetadata: true, Pinned: []string{"/workspace/a", "/workspace/a/bin"},
			Grants: []Grant{{tree("/"), ops("read write readdir create_dir rm rename symlink truncate")}, {tree("/lib"), ops("execute")},
				{file("/usr/bin/node"), ops("execute")}, {tree("/workspace/a/bin"), ops("execute")}},
		}},
		{"read-only and noexec", `{"default":"allow","rules":[
			{"mode":"deny","operations":[` + writes + `],"paths":["/workspace/lib/**","/tmp/f"]},
			{"mode":"deny","operations":["execute"],"paths":["/workspace/lib/**","/tmp/**"]}]}`, Plan{
			ReadOnly: []Place{file("/tmp/f"), tree("/workspace/lib")}, NoExec: []Place{tree("/tmp"), tree("/workspace/lib")},
		}},
		{"a broad deny leaves needs", `{"default":"allow","rules":[{"mode":"deny","paths":["/usr/**"]}]}`, Plan{
			Hide: []Place{tree("/usr")}, Show: []Place{file("/usr/bin/node")},
			ReadOnly: []Place{file("/usr/bin/node")},
		}},
		{"only stat", `{"rules":[{"mode":"allow","operations":["stat"],"paths":["/**"]}]}`, Plan{
			Restricts: true, Grants: needs(), Sealed: []string{"/workspace", "/home/node"}, NoMetadata: true, NoRename: true, NoWatch: true,
		}},
		{"one file", `{"rules":[{"mode":"allow","operations":["read","write"],"paths":["/workspace/a"]}]}`, Plan{
			Restricts: true, Hide: []Place{tree("/")},
			Grants: []Grant{{tree("/lib"), ops(looking)}, {file("/dev/null"), ops("read write")}, {file("/workspace/a"), ops("read write")}, {file("/usr/bin/node"), ops("read execute")}},
			Show:   []Place{tree("/lib"), file("/dev/null"), file("/workspace/a"), file("/usr/bin/node")},
			Sealed: []string{"/workspace", "/home/node"}, NoMetadata: true, NoRename: true,
		}},
		{"no metadata, no rename", `{"default":"allow","rules":[{"mode":"deny","operations":["chmod","rename"],"paths":["/**"]}]}`, Plan{
			Restricts: true, NoMetadata: true, NoRename: true,
			Grants: []Grant{{tree("/"), ops("read write readdir create_dir rm symlink truncate execute")}},
		}},
	}
	for _, tt := range tests {
		got, err := Lower(parse(t, `{"network":"deny","fs":`+tt.fs+`}`), world)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(Plan{}, "Notes")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestLowerOthers(t *testing.T) {
	net := func(rules string) string {
		return `{"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}` + rules + `]}}`
	}
	own := Net{Inet: true, TCP: true, UDP: true, AnyPort: true}
	tests := []struct {
		text string
		want Plan
	}{
		{`{}`, Plan{Net: own}},
		{`{"network":"deny"}`, Plan{}},
		{`{"network":{"rules":[{"mode":"deny","patterns":["udp://localhost:*"]}]}}`, Plan{}},
		{`{"process":"deny"}`, Plan{Net: own, NoSignals: true, NoInspect: true}},
		{`{"process":{"rules":[{"mode":"allow","operations":["signal"]}]}}`, Plan{Net: own, NoInspect: true}},
		{`{"childProcess":"deny"}`, Plan{Net: own, Spawn: Spawn{Denied: true}}},
		{`{"childProcess":{"rules":[{"mode":"allow","patterns":["/**"]}]}}`, Plan{Net: own}},
		{`{"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/bin/git","/opt/**"]}]}}`, Plan{
			Net: own, Restricts: true, Spawn: Spawn{Only: []Place{tree("/opt"), file("/usr/bin/git")}},
			Grants: []Grant{
				{tree("/"), ops("read write readdir create_dir rm rename symlink truncate")},
				{tree("/lib"), ops("execute")}, {tree("/opt"), ops("execute")}, {file("/usr/bin/git"), ops("execute")},
			},
		}},
		{net(``), Plan{Net: Net{Inet: true, TCP: true}}},
		{net(`,{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:80","tcp://localhost:22"]}`),
			Plan{Net: Net{Inet: true, TCP: true, Ports: []uint16{22, 80}}}},
		{net(`,{"mode":"allow","patterns":["tcp://localhost:*"]},{"mode":"deny","patterns":["tcp://a.b:1","dns://*","tcp://10.0.0.1:*"]}`),
			Plan{Net: Net{Inet: true, TCP: true, AnyPort: true}}},
		{`{"network":{"rules":[{"mode":"allow","patterns":["udp://localhost:*"]}]}}`, Plan{Net: Net{Inet: true, UDP: true}}},
		{`{"network":{"rules":[{"mode":"allow","patterns":["tcp://localhost:*"]},{"mode":"deny","patterns":["tcp://*:*"]}]}}`, Plan{}},
	}
	for _, tt := range tests {
		got, err := Lower(parse(t, tt.text), world)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(Plan{}, "Notes")); diff != "" {
			t.Errorf("%s: %s", tt.text, diff)
		}
	}
}

func TestLowerRefuses(t *testing.T) {
	fs := func(rules string) string { return `{"fs":{"default":"allow","rules":[` + rules + `]}}` }
	net := func(rules string) string { return `{"network":{"rules":[` + rules + `]}}` }
	tests := []struct{ text, place, why, nearest string }{
		{fs(`{"mode":"deny","paths":["/a/*.key"]}`), "fs.rules[0].paths[0]", "not patterns of names", "/a/**"},
		{fs(`{"mode":"deny","paths":["/a/**","/a/**/b"]}`), "fs.rules[0].paths[1]", "not patterns of names", "/a/**"},
		{fs(`{"mode":"deny","operations":["read"],"paths":["/a/**"]}`), "fs.rules[0].paths[0]", "revoke read", "deny everything there"},
		{fs(`{"mode":"deny","operations":["write"],"paths":["/a/**"]}`), "fs.rules[0].paths[0]", "revoke write", "or all of write"},
		{fs(`{"mode":"deny","operations":["stat"],"paths":["/a/**"]}`), "fs.rules[0].paths[0]", "lacks a hook for stat", "everything"},
		{fs(`{"mode":"deny","operations":["chmod"],"paths":["/workspace/**"]}`), "fs.rules[0].paths[0]", "cannot restrict chmod", "nowhere"},
		{fs(`{"mode":"deny","operations":["rename"],"paths":["/workspace/**"]}`), "fs.rules[0].paths[0]", "distinguish a rename", "rename everywhere"},
		{`{"fs":{"rules":[{"mode":"allow","operations":["rm","create_dir"],"paths":["/workspace/**"]},{"mode":"allow","operations":["rm","write","rename"],"paths":["/tmp/**"]}]}}`,
			"fs", "distinguish a rename", "rename everywhere"},
		{`{"fs":{"rules":[{"mode":"allow","operations":["rm","symlink"],"paths":["/workspace/**"]},{"mode":"allow","operations":["rm","write","rename"],"paths":["/tmp/**"]}]}}`,
			"fs", "distinguish a rename", "rename everywhere"},
		{fs(`{"mode":"deny","operations":["rm"],"paths":["/**"]}`), "fs", "removes one name", "rm and write"},
		{fs(`{"mode":"deny","operations":["chmod"],"paths":["/tmp/**"]}`), "fs.rules[0].paths[0]", "cannot restrict chmod", "nowhere"},
		{fs(`{"mode":"deny","operations":[` + writes + `],"paths":["/a/**"]},{"mode":"allow","paths":["/a/b/**"]}`),
			"fs.rules[1].paths[0]", "lies below a folder", "outermost"},
		{fs(`{"mode":"deny","operations":["execute"],"paths":["/usr/**"]}`), "fs.rules[0]", "Node itself needs execute", "outermost"},
		{fs(`{"mode":"deny","paths":["/lib/**"]}`), "fs.rules[0].paths[0]", "its libraries", "leave it out"},
		{fs(`{"mode":"deny","operations":["read"],"paths":["/lib/x"]}`), "fs.rules[0].paths[0]", "its libraries", "leave it out"},
		{fs(`{"mode":"deny","paths":["/usr/bin/node"]}`), "fs.rules[0].paths[0]", "Node itself", "leave it out"},
		{fs(`{"mode":"deny","paths":["/usr/bin/node/**"]}`), "fs.rules[0].paths[0]", "Node itself", "leave it out"},
		{fs(`{"mode":"deny","operations":["stat"],"paths":["/lib/**"]}`), "fs.rules[0].paths[0]", "Node itself needs it", "leave it out"},
		{fs(`{"mode":"deny","paths":["/a"]},{"mode":"deny","paths":["/a/b"]}`), "fs.rules[0].paths[0]", "it is a folder", "/a/**"},
		{fs(`{"mode":"deny","paths":["/workspace"]}`), "fs.rules[0].paths[0]", "it is a folder", "/workspace/**"},
		{`{"fs":{"rules":[{"mode":"allow","operations":["readdir"],"paths":["/a"]}]}}`, "fs.rules[0].paths[0]", "checked on the folder", "/a/**"},
		{`{"fs":{"rules":[{"mode":"allow","paths":["/a"]}]}}`, "fs.rules[0].paths[0]", "checked on the folder", "/a/**"},
		{`{"fs":{"rules":[{"mode":"allow","operations":["chmod"],"paths":["/workspace/a/**"]}]}}`, "fs.rules[0].paths[0]", "chmod alone", "write"},
		{`{"childProcess":{"default":"allow","rules":[{"mode":"deny","patterns":["/bin/sh"]}]}}`, "childProcess.rules[0].patterns[0]", "as a copy", "rules that allow"},
		{`{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/*"]}]}}`, "childProcess.rules[0].patterns[0]", "not patterns", "/bin/**"},
		{net(`{"mode":"allow","operations":["connect"],"patterns":["tcp://localhost:1"]}`), "network.rules[0]", "cannot be distinguished", "both"},
		{net(`{"mode":"allow","operations":["connect","fetch"],"patterns":["tcp://localhost:*"]}`), "network.rules[0]", "listen on a port cannot be distinguished", "listen"},
		{net(`{"mode":"allow","patterns":["tcp://localhost:1"]}`), "network.rules[0]", "listens without being bound", "tcp://localhost:*"},
		{net(`{"mode":"allow","patterns":["tcp://localhost:*"]},{"mode":"deny","operations":["fetch","connect"],"patterns":["tcp://localhost:22"]}`),
			"network.rules[1]", "cannot deny a port", "ports wanted"},
		{net(`{"mode":"allow","patterns":["tcp://127.0.0.1:80"]}`), "network.rules[0].patterns[0]", "the kernel checks ports", "tcp://localhost:*"},
		{net(`{"mode":"deny","patterns":["tcp://[::1]:80"]}`), "network.rules[0].patterns[0]", "the kernel checks ports", "tcp://localhost:80"},
		{net(`{"mode":"allow","patterns":["udp://0.0.0.0:*"]}`), "network.rules[0].patterns[0]", "the kernel checks ports", "udp://localhost:*"},
		{net(`{"mode":"allow","patterns":["udp://localhost:53"]}`), "network.rules[0]", "UDP can only be allowed or denied", "udp://localhost:*"},
		{net(`{"mode":"allow","operations":["listen"],"patterns":["udp://localhost:*"]}`), "network.rules[0]", "UDP can only be allowed or denied", "or none"},
	}
	for _, tt := range tests {
		_, err := Lower(parse(t, tt.text), world)
		bad, ok := errors.AsType[*RuleError](err)
		if !ok || bad.Place != tt.place || !strings.Contains(bad.Why, tt.why) || !strings.Contains(bad.Nearest, tt.nearest) {
			t.Errorf("%s:\n got %v\nwant %s: %s; %s", tt.text, err, tt.place, tt.why, tt.nearest)
		}
	}
}

func TestLowerNamesEveryWrongRule(t *testing.T) {
	_, err := Lower(parse(t, `{"fs":{"rules":[{"mode":"allow","paths":["/*"]},{"mode":"allow","paths":["/?"]}]},"network":{"rules":[{"mode":"allow","patterns":["udp://a.test:1"]}]}}`), world)
	for _, place := range []string{"fs.rules[0].paths[0]", "fs.rules[1].paths[0]", "network.rules[0].patterns[0]"} {
		if err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%s is not in %v", place, err)
		}
	}
}

func TestPresetsLower(t *testing.T) {
	for _, preset := range Presets() {
		for _, cwd := range []string{"/workspace", "/workspace/deep/er", "/"} {
			w := world
			w.Own = append([]string{}, w.Own...)
			if cwd == "/workspace/deep/er" {
				w.Own = append(w.Own, cwd)
			}
			p := preset.Make(cwd)
			plan, err := Lower(p, w)
			if err != nil {
				t.Errorf("%s in %s: %v", preset.Name, cwd, err)
				continue
			}
			if want := len(p.FS.Rules) + len(p.Network.Rules) + len(scopes); len(plan.Notes) != want {
				t.Errorf("%s: %d notes, want %d", preset.Name, len(plan.Notes), want)
			}
			for _, n := range plan.Notes {
				if n.Text == "" || strings.ContainsAny(n.Text, "\n\x00") {
					t.Errorf("%s: note %+v", preset.Name, n)
				}
			}
		}
	}
}

func TestPlanIsPlainData(t *testing.T) {
	plan, err := Lower(Strict(), world)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var again Plan
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, &again); diff != "" {
		t.Error(diff)
	}
}
