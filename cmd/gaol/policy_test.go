package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/flags"
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
		{"empty", `{}`, nil, true, []string{"fs.default ", "network.default ", "the loopback device only", "network.rules[0]", "env.default "}, ""},
		{"no network", `{"network":"deny"}`, nil, true, []string{"no sockets but those within the jail"}, ""},
		{"rules", `{"fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]}]}}`, nil, true,
			[]string{"fs.rules[0]", "/workspace/secret/**: hidden by a mount"}, ""},
		{"the working directory", `{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["chmod"],"paths":["/srv/**"]}]}}`, []string{"--cwd", "/srv"}, false,
			[]string{`refused: fs.rules[0].paths[0] "/srv/**"`, "  why:     Landlock cannot restrict chmod"}, "refused; see above"},
		{"several", `{"fs":{"rules":[{"mode":"allow","paths":["/a*/b","/c?"]}]},"network":{"rules":[{"mode":"allow","patterns":["udp://a.test:1"]}]}}`, nil, false,
			[]string{`refused: fs.rules[0].paths[0] "/a*/b"` + "\n  why:     the kernel knows", `refused: fs.rules[0].paths[1] "/c?"`, "refused: network.rules[0].patterns[0] \"udp://a.test:1\"", "  nearest: /**\n"}, "refused; see above"},
		{"a URL", `{"network":{"rules":[{"mode":"allow","patterns":["https://api.example.com/v1"]}]}}`, nil, false,
			[]string{`refused: network.rules[0].patterns[0]`, "  nearest: tcp://api.example.com:443\n"}, "gaol policy schema"},
		{"no JSON", "{\n\"fs\" 1}", nil, false, []string{"refused: line 2, column 6\n"}, "standard input: permissions: line 2, column 6: invalid character"},
		{"unknown", `{"fs":{"rules":[{"mode":"allow","path":["/a"]}]}}`, nil, false, []string{"refused: fs.rules[0].path\n"}, "gaol policy schema"},
		{"programs without Node", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/true"]}]}}`, nil, false, []string{"is not among the programs"}, "refused"},
		{"programs without Node, forked", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/true"]}]}}`, []string{"--launcher", "zygote"}, true, []string{"Landlock grants execute on nothing but /bin/true"}, ""},
		{"another isolation", `{"fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]}]}}`, []string{"--isolation", "runc"}, true,
			[]string{"/workspace/secret/**: hidden by a mount"}, ""},
		{"without Landlock", `{"fs":{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**"]}]}}`, []string{"--isolation", "gvisor"}, true,
			[]string{"/workspace/secret/**: hidden by a mount"}, ""},
		{"Landlock, in gVisor", `{"fs":{"rules":[{"mode":"allow","paths":["/workspace/**"]}]}}`, []string{"--isolation", "gvisor"}, false,
			[]string{"refused:\n  why: ", "isolation gvisor does not support", "lacks Landlock", "use isolation native"}, "refused"},
		{"programs without Node, in a container", `{"childProcess":{"rules":[{"mode":"allow","patterns":["/bin/true"]}]}}`, []string{"--isolation", "oci=/usr/bin/x"}, false,
			[]string{"isolation oci does not support LauncherZygote", "use isolation native"}, "refused"},
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
		{"policy check --isolation docker -", `--isolation "docker"`},
		{"policy check --isolation oci=x -", "is not absolute"},
		{"policy check --isolation runc --launcher zygote -", "--launcher zygote: isolation oci does not support"},
		{"policy check --cwd /a/../b -", "--cwd"},
		{"policy presets lax", "want one of strict, workspace, default, open, npm"},
		{"policy presets strict --project .", "--project is for the preset npm"},
		{"policy presets --project .", "--project is for the preset npm"},
		{"policy presets npm --cwd a", "--cwd"},
		{"policy schema x", `unknown command "x"`},
		{"policy bogus", `unknown command "bogus"`},
	} {
		t.Run(tc.args, func(t *testing.T) {
			checkFailure(t, new(fake).call(t, "", strings.Fields(tc.args)...), tc.want)
		})
	}
}

// A printed preset parses to the same permissions, which can be enforced.
func TestPresetsRoundTrip(t *testing.T) {
	useNPM(t, "")
	for _, name := range flags.PresetNames() {
		preset, err := flags.Preset(name, "")
		if err != nil {
			t.Fatal(err)
		}
		got := new(fake).call(t, "", "policy", "presets", name, "--cwd", "/srv/a")
		if got.code != 0 || got.stderr != "" {
			t.Fatalf("%s: %+v", name, got)
		}
		read, err := policy.Parse([]byte(got.stdout))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(preset.Make("/srv/a"), read); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if checked := new(fake).call(t, got.stdout, "policy", "check", "-", "--cwd", "/srv/a"); checked.code != 0 {
			t.Errorf("%s: %+v", name, checked)
		}
	}
	if got := new(fake).call(t, "", "policy", "presets"); strings.Count(got.stdout, "\n") != len(flags.PresetNames()) {
		t.Errorf("got %+v", got)
	}
}

// useNPM sets npm's configuration to a home with the text of .npmrc, and nothing else.
func useNPM(t *testing.T, text string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_userconfig"} {
		t.Setenv(name, "")
	}
	t.Setenv("npm_config_globalconfig", filepath.Join(home, "npmrc"))
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The preset npm allows the registries of npm's configuration, and prints no secrets.
func TestPresetNPM(t *testing.T) {
	useNPM(t, "registry=https://user:sesame@npm.example.com:4873/\n@acme:registry=https://acme.example/\n//npm.example.com:4873/:_authToken=sesame\n")
	want := policy.Default()
	want.Network.Rules = append(want.Network.Rules, localhost("tcp://acme.example:443", "tcp://npm.example.com:4873")...)
	var f fake
	if got := f.call(t, "", "run", "--preset", "npm", "--command", "--", "npm", "install"); got.code != 0 || got.stderr != "" {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff(want, f.options.Permissions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, ".npmrc"), []byte("registry=https://project.example/"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := new(fake).call(t, "", "policy", "presets", "npm", "--project", project)
	if !strings.Contains(got.stdout, `"tcp://project.example:443"`) || strings.Contains(got.stdout, "npm.example.com") || strings.Contains(got.stdout, "sesame") {
		t.Errorf("got %+v", got)
	}
	useNPM(t, "registry=https://user:sesame@localhost:4873/\n")
	for _, args := range [][]string{{"run", "--preset", "npm", "-e", "1"}, {"policy", "presets", "npm"}} {
		got := new(fake).call(t, "", args...)
		checkFailure(t, got, "npm's configuration: registry of /")
		if strings.Contains(got.stderr, "sesame") {
			t.Errorf("%q: %s", args, got.stderr)
		}
	}
}

func TestPolicySchema(t *testing.T) {
	if got := new(fake).call(t, "", "policy", "schema"); got.code != 0 || got.stdout != string(policy.Schema()) {
		t.Errorf("got %+v", got)
	}
}
