package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/quota"
)

// readText reads a configuration.
func readText(t *testing.T, text string, o Overrides) (*Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path, o)
}

// snippetSettings are configurations with a part of their error; empty for valid ones. DIR is a folder.
var snippetSettings = map[string]string{
	`{}`: "",
	`{"snippets": {"nodeModules": "DIR", "adapter": "DIR/zustand.mjs", "network": "public", "noLint": true}}`:                                    "",
	`{"snippets": {"adapter": "directive", "origins": ["https://docs.example.com"]}}`:                                                            "",
	`{"snippets": {"lintRules": "DIR/rules.json"}}`:                                                                                              "",
	`{"snippets": {"adapter": "directive", "lintRules": "DIR/rules.json"}}`:                                                                      "",
	`{"snippets": {"anonymous": {}}}`:                                                                                                            "",
	`{"snippets": {"anonymous": {"runs": 2, "requestsPerMin": 0.5, "proxies": ["127.0.0.1/32", "fd00::/8"]}}, "publicUrl": "https://a.b/gaol/"}`: "",

	`{"snippets": {"adapters": "none"}}`:                                                  "unknown field",
	`{"snippets": {"nodeModules": "node_modules"}}`:                                       "absolute",
	`{"snippets": {"nodeModules": "/does/not/exist"}}`:                                    "no such file",
	`{"snippets": {"nodeModules": "DIR/zustand.mjs"}}`:                                    "not a folder",
	`{"snippets": {"adapter": "react"}}`:                                                  "want none, directive",
	`{"snippets": {"adapter": "zustand.mjs"}}`:                                            "want none, directive",
	`{"snippets": {"adapter": "DIR/missing.mjs"}}`:                                        "no such file",
	`{"snippets": {"adapter": "DIR/large.mjs"}}`:                                          "more than",
	`{"snippets": {"adapter": "DIR/empty.mjs"}}`:                                          "empty",
	`{"snippets": {"adapter": "DIR/none.mjs"}}`:                                           "name",
	`{"snippets": {"adapter": "DIR/A B.mjs"}}`:                                            "name",
	`{"snippets": {"adapter": "DIR/dir.mjs"}}`:                                            "not a regular file",
	`{"snippets": {"lintRules": "rules.json"}}`:                                           `lintRules "rules.json": want an absolute path`,
	`{"snippets": {"lintRules": "DIR/missing.json"}}`:                                     `missing.json": no such file`,
	`{"snippets": {"lintRules": "DIR/dir.mjs"}}`:                                          `dir.mjs": it is not a regular file`,
	`{"snippets": {"lintRules": "DIR/large.mjs"}}`:                                        `large.mjs": more than`,
	`{"snippets": {"lintRules": "DIR/empty.mjs"}}`:                                        `empty.mjs": lint rules: `,
	`{"snippets": {"lintRules": "DIR/wrong.json"}}`:                                       `wrong.json": lint rules: extends: unknown rules "react"`,
	`{"snippets": {"lintRules": "DIR/rules.json", "noLint": true}}`:                       "noLint turns off all rules",
	`{"snippets": {"network": "allow"}}`:                                                  "want public",
	`{"snippets": {"network": "public"}, "permissions": {"network": "deny"}}`:             "permissions does not allow",
	`{"snippets": {"origins": ["*"]}}`:                                                    "origins",
	`{"snippets": {"origins": ["https://docs.example.com/"]}}`:                            "origins",
	`{"snippets": {"origins": ["null"]}}`:                                                 "origins",
	`{"snippets": {"anonymous": {"runs": -1}}}`:                                           "anonymous: runs",
	`{"snippets": {"anonymous": {"requestsPerMin": -1}}}`:                                 "requestsPerMin",
	`{"snippets": {"anonymous": {"proxies": ["10.0.0.1/8"]}}}`:                            "want 10.0.0.0/8",
	`{"snippets": {"anonymous": {"proxies": ["proxy"]}}}`:                                 "proxy",
	`{"snippets": {"anonymous": {"walls": 1}}}`:                                           "unknown field",
	`{"tenants": {"anonymous": {"runs": 1}}}`:                                             "want uid:NUMBER",
	`{"publicUrl": "gaol.example.com"}`:                                                   "publicUrl",
	`{"publicUrl": "ftp://gaol.example.com"}`:                                             "publicUrl",
	`{"publicUrl": "https://gaol.example.com/#"}`:                                         "publicUrl",
	`{"publicUrl": "https://gaol.example.com/?"}`:                                         "publicUrl",
	`{"publicUrl": "https://a:b@gaol.example.com/"}`:                                      "publicUrl",
	`{"publicUrl": "https://gaol.example.com/` + strings.Repeat("a", maxPublicURL) + `"}`: "publicUrl",
}

func TestSnippetSettings(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"zustand.mjs": "export {}", "large.mjs": strings.Repeat(" ", MaxAdapter+1), "empty.mjs": "", "none.mjs": "1", "A B.mjs": "1",
		"rules.json": `{"extends": "directive"}`, "wrong.json": `{"extends": "react"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.mjs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range snippetSettings {
		_, err := readText(t, strings.ReplaceAll(text, "DIR", dir), Overrides{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}

func TestAdapters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zustand.mjs")
	if err := os.WriteFile(path, []byte("export {}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for adapter, want := range map[string][]string{"": {"none"}, "none": {"none"}, "directive": {"directive", "none"}, path: {"zustand", "none"}} {
		s, err := readText(t, fmt.Sprintf(`{"snippets": {"adapter": %q}}`, adapter), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, a := range s.Snippets.Adapters {
			names = append(names, a.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q: %v, want %v", adapter, names, want)
		}
		if a := s.Snippets.Adapters[0]; a.Name == "zustand" && a.Code != "export {}" {
			t.Errorf("%+v", a)
		}
	}
}

// Lint rules come from the adapter of the settings, not from the adapter that a request names instead.
// They are read with the settings.
func TestLintRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.json")
	for _, c := range []struct{ adapter, text string }{
		{"none", `{"names": {"alert": "no window"}}`}, {"directive", `{"names": {"confirm": "no window"}}`},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		set, err := readText(t, fmt.Sprintf(`{"snippets": {"adapter": %q, "lintRules": %q}}`, c.adapter, path), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		for _, adapter := range set.Snippets.Adapters {
			rules := set.Snippets.Rules(adapter.Name)
			if adapter.Name != c.adapter && rules != nil {
				t.Errorf("%s: %s has %+v", c.adapter, adapter.Name, rules)
			}
			if adapter.Name == c.adapter && (rules == nil || len(rules.Names) != 1 || !strings.Contains(c.text, slices.Collect(maps.Keys(rules.Names))[0])) {
				t.Errorf("%s: %+v, want %s", c.adapter, rules, c.text)
			}
		}
	}
	set, err := readText(t, `{"snippets": {"adapter": "directive"}}`, Overrides{})
	if err != nil || set.Snippets.Rules("directive") != nil {
		t.Errorf("%+v, %v; want the adapter's", set, err)
	}
}

func TestOverrides(t *testing.T) {
	dir := t.TempDir()
	config := `{"publicUrl": "https://file.example.com/", "snippets": {"nodeModules": "/does/not/exist"}}`
	s, err := readText(t, config, Overrides{PublicURL: "http://flag.example.com:8640/gaol//", NodeModules: dir})
	if err != nil || s.PublicURL != "http://flag.example.com:8640/gaol" || s.Snippets.NodeModules != dir {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Read("", Overrides{PublicURL: "x"}); err == nil || !strings.Contains(err.Error(), "config: defaults: publicUrl") {
		t.Error(err)
	}
}

func TestAnonymousLimits(t *testing.T) {
	s, err := readText(t, `{"tenants": {"uid:1": {"runs": 3}}, "snippets": {"anonymous": {"cpus": 2}}}`, Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	want := quota.Limits{CPUs: 2, Runs: anonymousRuns, Requests: anonymousRequests}
	if all := s.Limits(); all[AnonymousTenant] != want || all["uid:1"].Runs != 3 || len(s.Tenants) != 1 {
		text, _ := json.Marshal(all)
		t.Errorf("%s", text)
	}
	s.Snippets.Anonymous = nil
	if all := s.Limits(); len(all) != 1 {
		t.Errorf("%v", all)
	}
	if p := (&Anonymous{Proxies: []netip.Prefix{netip.MustParsePrefix("::1/128")}}).PerMin(); p != anonymousRequestsPerMin {
		t.Error(p)
	}
}
