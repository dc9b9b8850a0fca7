package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
)

// programs makes a folder with programs, and a file that is none.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, mode := range map[string]os.FileMode{"kata": 0o755, "runc": 0o755, "native": 0o755, "a b": 0o755, "file": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestIsolations(t *testing.T) {
	dir := programs(t)
	for text, want := range map[string][]string{
		`{}`:                               {"native"},
		`{"isolation": "native"}`:          {"native"},
		`{"isolation": "runc"}`:            {"runc"},
		`{"isolations": ["runc", "crun"]}`: {"native", "runc", "crun"},
		`{"isolation": "runc", "isolations": ["native", "runc"]}`:       {"runc", "native"},
		`{"isolation": "oci=DIR/kata", "isolations": ["native"]}`:       {"kata", "native"},
		`{"isolations": ["oci=DIR/runc", "oci=DIR/runc"]}`:              {"native", "runc"},
		`{"isolations": ["crun+systemd", "oci=DIR/runc+systemd"]}`:      {"native", "crun+systemd", "runc+systemd"},
		`{"isolations": ["oci=DIR/runc", "crun"], "isolation": "crun"}`: {"crun", "runc"},
	} {
		s, err := readText(t, strings.ReplaceAll(text, "DIR", dir), Overrides{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := s.IsolationNames(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		for _, name := range want {
			if i, err := s.FindIsolation(name); err != nil || i.Name != name {
				t.Errorf("%s: %q is %+v, %v", text, name, i, err)
			}
		}
	}
}

func TestInvalidIsolations(t *testing.T) {
	dir := programs(t)
	for text, want := range map[string]string{
		`{"isolation": "docker"}`:                       "not one of native, gvisor, microvm, runc, crun",
		`{"isolation": "oci=runc"}`:                     "not absolute",
		`{"isolations": [""]}`:                          "is empty",
		`{"isolations": "runc"}`:                        "isolations: want an array",
		`{"isolations": ["runc", "oci=DIR/runc"]}`:      "the name runc is taken",
		`{"isolations": ["oci=DIR/native"]}`:            "and not native",
		`{"isolations": ["oci=DIR/a b"]}`:               "want letters",
		`{"isolations": ["oci=DIR/missing"]}`:           "no such file",
		`{"isolations": ["oci=DIR/file"]}`:              "is not executable",
		`{"isolations": ["oci=DIR"]}`:                   "is not a regular file",
		`{"isolations": ["crun", {"runc": "/bin/id"}]}`: "isolations[1]: want a string",
	} {
		if _, err := readText(t, strings.ReplaceAll(text, "DIR", dir), Overrides{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Requests choose among the names of the settings. They cannot give a path, not even one that the
// settings have.
func TestFindIsolation(t *testing.T) {
	dir := programs(t)
	s, err := readText(t, `{"isolations": ["oci=`+dir+`/kata"]}`, Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if i, err := s.FindIsolation("kata"); err != nil || i.Kind != runtime.IsolationOCI || i.OCI.Runtime != dir+"/kata" {
		t.Errorf("%+v, %v", i, err)
	}
	for _, name := range []string{"runc", "crun", "oci=" + dir + "/kata", "oci=/bin/sh", dir + "/kata", "KATA", "kata ", "docker"} {
		if i, err := s.FindIsolation(name); err == nil || !strings.Contains(err.Error(), "the server allows native, kata") {
			t.Errorf("%q: %+v, %v", name, i, err)
		}
	}
}

func TestIsolationOverride(t *testing.T) {
	s, err := readText(t, `{"isolation": "native", "isolations": ["crun"]}`, Overrides{Isolation: "runc"})
	if err != nil || !slices.Equal(s.IsolationNames(), []string{"runc", "crun"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Read("", Overrides{Isolation: "docker"}); err == nil {
		t.Error("an unknown isolation is accepted")
	}
}

// A client that is trusted like root may name any isolation, by a path, too.
func TestTrustedIsolation(t *testing.T) {
	dir := programs(t)
	s := Trusted()
	if got := s.IsolationNames(); !slices.Equal(got, []string{"native"}) {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{"native": "native", "runc": "runc", "oci=" + dir + "/kata": "oci=" + dir + "/kata"} {
		if i, err := s.FindIsolation(name); err != nil || i.Name != want {
			t.Errorf("%q: %+v, %v", name, i, err)
		}
	}
	for _, name := range []string{"docker", "oci=kata", "oci=" + dir + "/missing", "oci=" + dir + "/file"} {
		if i, err := s.FindIsolation(name); err == nil {
			t.Errorf("%q: %+v", name, i)
		}
	}
}
