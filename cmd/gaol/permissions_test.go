package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/flags"
	"gaol/policy"
)

// localhost returns the rules that --allow-net adds.
func localhost(patterns ...string) []policy.Rule {
	return []policy.Rule{{Mode: policy.Allow, Patterns: patterns}}
}

// Scopes of --permissions replace the preset's; --allow-net adds rules.
func TestPermissionFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte("{\n \"process\": \"deny\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	strict, open := policy.Strict(), policy.Open()
	added := func(patterns ...string) policy.Scope {
		return policy.Scope{Default: policy.Deny, Rules: slices.Concat(policy.Default().Network.Rules, localhost(patterns...))}
	}
	for _, tc := range []struct {
		name string
		args []string
		want policy.Permissions
	}{
		{"none", nil, policy.Permissions{}},
		{"permissions", []string{"--permissions", `{"fs":"deny"}`}, policy.Permissions{FS: strict.FS}},
		{"empty", []string{"--permissions", ` {} `}, policy.Permissions{}},
		{"the last counts", []string{"--permissions", `{"fs":"deny"}`, "--permissions", `{"process":"deny"}`}, policy.Permissions{Process: strict.Process}},
		{"file", []string{"--permissions", "@" + file}, policy.Permissions{Process: strict.Process}},
		{"preset", []string{"--preset", "strict"}, strict},
		{"preset of the cwd", []string{"--preset", "workspace", "--cwd", "/srv/a"}, policy.Workspace("/srv/a")},
		{"over the preset", []string{"--preset", "strict", "--permissions", `{"env":"allow"}`},
			policy.Permissions{Env: policy.Scope{Default: policy.Allow}}.Over(strict)},
		{"network", []string{"--allow-net", "tcp://localhost:*"}, policy.Permissions{Network: added("tcp://localhost:*")}},
		{"network twice", []string{"--allow-net", "tcp://localhost:*", "--allow-net", "udp://localhost:*"},
			policy.Permissions{Network: added("tcp://localhost:*", "udp://localhost:*")}},
		{"network of a preset", []string{"--preset", "strict", "--allow-net", "tcp://localhost:*"},
			policy.Permissions{Network: policy.Scope{Default: policy.Deny, Rules: localhost("tcp://localhost:*")}}.Over(strict)},
		{"more network than a preset's", []string{"--preset", "open", "--allow-net", "tcp://localhost:*"},
			policy.Permissions{Network: policy.Scope{Default: policy.Deny, Rules: slices.Concat(open.Network.Rules, localhost("tcp://localhost:*"))}}.Over(open)},
		{"beside another scope", []string{"--permissions", `{"fs":"deny"}`, "--allow-net", "tcp://localhost:*"},
			policy.Permissions{FS: strict.FS, Network: added("tcp://localhost:*")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f fake
			if got := f.call(t, "", append(append([]string{"run"}, tc.args...), "-e", "1")...); got.code != 0 || got.stderr != "" {
				t.Fatalf("got %+v", got)
			}
			if diff := cmp.Diff(tc.want, f.options.Permissions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPermissionFlagsRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := write("broken.json", "{\n  \"fs\": \"deny\",\n}\n")
	unknown := write("unknown.json", `{"files": "deny"}`)
	big := write("big.json", "{"+strings.Repeat(" ", policy.MaxText)+"}")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--permissions", ""}, `--permissions "": want a JSON object, or a file of one as @FILE`},
		{[]string{"--permissions", "policy.json"}, `--permissions "policy.json": want a JSON object, or a file of one as @FILE`},
		{[]string{"--permissions", "@/nonexistent/x"}, "--permissions: open /nonexistent/x: no such file or directory"},
		{[]string{"--permissions", "@" + dir}, "--permissions: read " + dir + ": is a directory"},
		{[]string{"--permissions", "@" + big}, "more than 1m"},
		{[]string{"--permissions", "@/dev/zero"}, "more than 1m"},
		{[]string{"--permissions", `{"fs":}`}, "--permissions: permissions: line 1, column 7: invalid character '}'"},
		{[]string{"--permissions", "@" + broken}, "--permissions @" + broken + ": permissions: line 3, column 1: invalid character '}'"},
		{[]string{"--permissions", "@" + unknown}, "--permissions @" + unknown + ": permissions: files: unknown field"},
		{[]string{"--permissions", `{"fs":{"rules":[{"mode":"deny","paths":["a"]}]}}`}, `--permissions: permissions: fs.rules[0].paths[0]: "a"`},
		{[]string{"--permissions", `{"fs":{"rules":[{"mode":"allow","paths":["/a*/b"]}]}}`}, `fs.rules[0].paths[0]: "/a*/b": the kernel knows folders and files, not patterns of names; nearest: /**`},
		{[]string{"--permissions", `{"fs":{"rules":[{"mode":"allow","paths":["/a*", "/b*", "/c*"]}]}}`}, "and 2 more, which gaol policy check lists"},
		{[]string{"--permissions", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/true"]}]}}`}, "/usr/local/bin/node is not among the programs"},
		{[]string{"--preset", "lax"}, "want one of strict, workspace, default, open, npm"},
		{[]string{"--allow-net", "a b"}, `--allow-net: "tcp://a b:*": not a host`},
		{[]string{"--allow-net", "http://a"}, `--allow-net: "http://a": not tcp://HOST:PORT`},
		{[]string{"--allow-net", ""}, `--allow-net: `},
		{[]string{"--allow-net", "udp://example.com:443"}, `--allow-net: "udp://example.com:443": UDP does not leave the sandbox; nearest: tcp://example.com:443`},
		{[]string{"--allow-net", "udp://127.0.0.1:*"}, `nearest: udp://localhost:*`},
		{[]string{"--allow-net", "tcp://localhost:*", "--permissions", `{"network":"deny"}`}, "--allow-net beside a network scope of --permissions"},
	} {
		t.Run(strings.Join(tc.args, " ")[:min(60, len(strings.Join(tc.args, " ")))], func(t *testing.T) {
			var f fake
			checkFailure(t, f.call(t, "", append(append([]string{"run"}, tc.args...), "-e", "1")...), tc.want)
			if f.closed != 0 {
				t.Error("a runtime was made")
			}
		})
	}
}

// gaol accepts the pattern that a refusal of --allow-net suggests.
func TestNearestPatternHolds(t *testing.T) {
	for _, pattern := range []string{"udp://example.com:443", "udp://127.0.0.1:*"} {
		_, nearest, ok := strings.Cut(new(fake).call(t, "", "run", "--allow-net", pattern, "-e", "1").stderr, "nearest: ")
		nearest, _, _ = strings.Cut(nearest, ";")
		if got := new(fake).call(t, "", "run", "--allow-net", nearest, "-e", "1"); !ok || got.code != 0 {
			t.Errorf("%s: nearest is %q, which gives %+v", pattern, nearest, got)
		}
	}
}

func TestDegradedFlags(t *testing.T) {
	f := fake{missing: []string{"truncate", "signal scope"}}
	got := f.call(t, "", "run", "--allow-degraded", "--audit-denials", "-e", "1")
	if !f.options.AllowDegraded || !f.options.AuditDenials {
		t.Errorf("options are %+v", f.options)
	}
	if want := "gaol: this kernel does not enforce: truncate, signal scope\n"; got.code != 0 || got.stderr != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	f = fake{mostFiles: 100}
	const want = "gaol: a process may have 100 open files, not 1024: gaol's own hard limit is no higher (`ulimit -Hn`)\n"
	for _, command := range []string{"run", "eval"} {
		if got := f.call(t, "", command, "-e", "1"); got.stderr != want {
			t.Errorf("%s: got %+v, want %q", command, got, want)
		}
		if got := f.call(t, "", command, "--open-files", "100", "-e", "1"); got.stderr != "" {
			t.Errorf("%s: got %+v", command, got)
		}
	}
	if got := f.call(t, "", "run", "--json", "--allow-degraded", "-e", "1"); got.stderr != "" {
		t.Errorf("with --json, standard error has %q", got.stderr)
	}
}

func TestCompletePresets(t *testing.T) {
	for _, args := range [][]string{{"run", "--preset", ""}, {"policy", "presets", ""}} {
		got := new(fake).call(t, "", append([]string{"__complete"}, args...)...)
		for _, name := range flags.PresetNames() {
			if !strings.Contains(got.stdout, name+"\n") {
				t.Errorf("%q: %s is not in %q", args, name, got.stdout)
			}
		}
	}
}
