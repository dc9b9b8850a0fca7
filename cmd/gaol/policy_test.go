package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/report"
	"gaol/policy"
)

func TestPolicyCheck(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		args       []string
		ok         bool
		want       []string // in standard output
		says       string   // on standard error
	}{
		{"empty", `{}`, nil, true, []string{"fs.default ", "network.default ", "no sockets but those within the jail", "env.default "}, ""},
		{"rules", `{"fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]}]}}`, nil, true,
			[]string{"fs.rules[0]", "/workspace/secret/**: hidden by a mount"}, ""},
		{"the working directory", `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["chmod"],"paths":["/srv/**"]}]}}`, []string{"--cwd", "/srv"}, false,
			[]string{`refused: fs.rules[0].paths[0] "/srv/**"`, "  why:     Landlock cannot restrict chmod"}, "refused; see above"},
		{"several", `{"fs":{"rules":[{"mode":"allow","paths":["/a*/b","/c?"]}]},"network":{"rules":[{"mode":"allow","patterns":["udp://a.test:1"]}]}}`, nil, false,
			[]string{`refused: fs.rules[0].paths[0] "/a*/b"` + "\n  why:     the kernel knows", `refused: fs.rules[0].paths[1] "/c?"`, "refused: network.rules[0].patterns[0] \"udp://a.test:1\"", "  nearest: /**\n"}, "refused; see above"},
		{"no JSON", "{\n\"fs\" 1}", nil, false, []string{"refused: line 2, column 6\n"}, "standard input: line 2, column 6: invalid character"},
		{"unknown", `{"fs":{"rules":[{"mode":"allow","path":["/a"]}]}}`, nil, false, []string{"refused: fs.rules[0].path\n"}, "gaol policy schema"},
		{"programs without Node", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/true"]}]}}`, nil, false, []string{"is not among the programs"}, "refused"},
		{"programs without Node, forked", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/true"]}]}}`, []string{"--launcher", "zygote"}, true, []string{"Landlock grants execute on nothing but /bin/true"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"policy", "check", "-"}, tc.args...)
			got := new(fake).call(t, tc.text, args...)
			if (got.code == 0) != tc.ok || !tc.ok && got.code != report.ExitFailure || tc.ok && got.stderr != "" {
				t.Errorf("exit status %d, %q", got.code, got.stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("standard output has %q, want %q in it", got.stdout, want)
				}
			}
			if !strings.Contains(got.stderr, tc.says) || strings.Count(got.stderr, "\n") > 1 {
				t.Errorf("standard error has %q, want a line with %q", got.stderr, tc.says)
			}
			var v policyCheck
			inJSON := new(fake).call(t, tc.text, append(args, "--json")...)
			if err := json.Unmarshal([]byte(inJSON.stdout), &v); err != nil || v.OK != tc.ok || (len(v.Refused) == 0) != tc.ok || (len(v.Held) > 0) != tc.ok || inJSON.code != got.code {
				t.Errorf("with --json: %v, %+v", err, inJSON)
			}
		})
	}
}

func TestPolicyRefuses(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.json")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, policy.MaxText+1); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, want string }{
		{"policy check", "nothing to check: give a FILE or -"},
		{"policy check /nonexistent/x", "policy check: open /nonexistent/x: no such file"},
		{"policy check /", "policy check: read /: is a directory"},
		{"policy check " + big, "more than 1m"},
		{"policy check --cwd a -", "--cwd"},
		{"policy check --cwd /a/../b -", "--cwd"},
		{"policy presets lax", "want one of strict, workspace, default, open"},
		{"policy schema x", `unexpected argument "x"`},
		{"policy bogus", `unknown command "bogus"`},
	} {
		t.Run(tc.args, func(t *testing.T) {
			checkFailure(t, new(fake).call(t, "", strings.Fields(tc.args)...), tc.want)
		})
	}
}

// A printed preset parses to the same permissions, which can be enforced.
func TestPresetsRoundTrip(t *testing.T) {
	for _, p := range policy.Presets() {
		got := new(fake).call(t, "", "policy", "presets", p.Name, "--cwd", "/srv/a")
		if got.code != 0 || got.stderr != "" {
			t.Fatalf("%s: %+v", p.Name, got)
		}
		read, err := policy.Parse([]byte(got.stdout))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.Make("/srv/a"), read); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Name, diff)
		}
		if checked := new(fake).call(t, got.stdout, "policy", "check", "-", "--cwd", "/srv/a"); checked.code != 0 {
			t.Errorf("%s: %+v", p.Name, checked)
		}
	}
	if got := new(fake).call(t, "", "policy", "presets"); strings.Count(got.stdout, "\n") != len(policy.Presets()) {
		t.Errorf("got %+v", got)
	}
}

func TestPolicySchema(t *testing.T) {
	if got := new(fake).call(t, "", "policy", "schema"); got.code != 0 || got.stdout != string(policy.Schema()) {
		t.Errorf("got %+v", got)
	}
}
