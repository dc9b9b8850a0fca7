package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, text string) Permissions {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOverMergesScopeByScope(t *testing.T) {
	p := parse(t, `{"fs":"deny","network":{"rules":[{"mode":"allow","patterns":["tcp://localhost:80"]}]}}`)
	want := Permissions{
		FS: Scope{Default: Deny}, Network: p.Network,
		ChildProcess: Scope{Default: Allow}, Process: Scope{Default: Allow}, Env: Scope{Default: Allow},
	}
	if diff := cmp.Diff(want, p.Over(Default())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Strict(), Permissions{}.Over(Strict())); diff != "" {
		t.Error(diff)
	}
}

func TestDecide(t *testing.T) {
	p := parse(t, `{
		"fs":{"default":"allow","rules":[
			{"mode":"deny","paths":["/a/**"]},
			{"mode":"allow","operations":["read"],"paths":["/a/b/**"]},
			{"mode":"deny","operations":["stat"],"paths":["/a/b/c"]}]},
		"network":{"rules":[{"mode":"allow","operations":["connect"],"patterns":["tcp://localhost:*"]},{"mode":"deny","patterns":["tcp://*:22"]}]},
		"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/bin/*"]}]},
		"process":{"default":"allow","rules":[{"mode":"deny","operations":["signal"]}]},
		"env":{"default":"allow","rules":[{"mode":"deny","patterns":["*_TOKEN"]},{"mode":"allow","patterns":["A_TOKEN"]}]}}`)
	tests := []struct {
		scope    string
		op       Operation
		resource string
		want     Decision
	}{
		{"fs", "read", "/x", Decision{true, -1}},
		{"fs", "read", "/a", Decision{false, 0}},
		{"fs", "write", "/a/b", Decision{false, 0}},
		{"fs", "read", "/a/b", Decision{true, 1}},
		{"fs", "stat", "/a/b", Decision{true, 1}},
		{"fs", "readlink", "/a/b/c", Decision{true, 1}},
		{"fs", "stat", "/a/b/c", Decision{false, 2}},
		{"fs", "stat", "/a/x", Decision{false, 0}},
		{"fs", "read", "a", Decision{false, -1}},
		{"fs", "read", "/a/../x", Decision{false, -1}},
		{"fs", "spawn", "/x", Decision{false, -1}},
		{"files", "read", "/x", Decision{false, -1}},
		{"network", "connect", "tcp://localhost:80", Decision{true, 0}},
		{"network", "connect", "tcp://localhost:22", Decision{false, 1}},
		{"network", "fetch", "tcp://localhost:80", Decision{false, -1}},
		{"childProcess", "spawn", "/usr/bin/git", Decision{true, 0}},
		{"childProcess", "spawn", "/usr/bin/../../tmp/x", Decision{false, -1}},
		{"process", "signal", "12", Decision{false, 0}},
		{"process", "inspect", "", Decision{true, -1}},
		{"env", "read", "HOME", Decision{true, -1}},
		{"env", "read", "GH_TOKEN", Decision{false, 0}},
		{"env", "read", "A_TOKEN", Decision{true, 1}},
	}
	for _, tt := range tests {
		if got := p.Decide(tt.scope, tt.op, tt.resource); got != tt.want {
			t.Errorf("%s %s %s: got %v, want %v", tt.scope, tt.op, tt.resource, got, tt.want)
		}
	}
	if p.PassesEnv("GH_TOKEN") || !p.PassesEnv("HOME") || !(Permissions{}).PassesEnv("HOME") || Strict().PassesEnv("HOME") {
		t.Error("PassesEnv differs")
	}
}

func TestPresets(t *testing.T) {
	for _, preset := range Presets() {
		p := preset.Make("/workspace")
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
		for _, info := range scopes {
			if info.of(&p).IsZero() {
				t.Errorf("%s leaves %s out", preset.Name, info.name)
			}
		}
	}
}

func TestEveryRowHasAReason(t *testing.T) {
	for _, s := range scopes {
		if s.about == "" || (s.key != "" && s.entries == "") {
			t.Errorf("%s has no description", s.name)
		}
		for _, o := range s.ops {
			if o.about == "" {
				t.Errorf("%s %s has no description", s.name, o.name)
			}
		}
	}
}
