package rootfs

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gaol/rootfs/download"
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

func TestIntegrity(t *testing.T) {
	sum := sha512.Sum512(nil)
	good := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	for text, ok := range map[string]bool{
		good: true, "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk= " + good: true, good + "?x": true,
		"": false, "sha512-": false, "sha512-AAAA": false, "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=": false, "sha512-!": false,
	} {
		if _, err := newNPMPackage("x", "1.0.0", text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestDowngrade checks that a registry on https cannot redirect to http, where the answer
// could be forged.
func TestDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	t.Setenv("npm_config_registry", secure.URL)
	c, err := newNPMClient(&inputs{})
	must(t, err)
	defer c.Close()
	c.http.Transport = secure.Client().Transport
	if _, err := c.release(t.Context(), "npm", "1.0.0"); !errors.Is(err, errDowngrade) {
		t.Errorf("error %v", err)
	}
}

// TestScope checks that the tarball of a package with a scope is at the path where registries have it.
func TestScope(t *testing.T) {
	const content = "tarball"
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/@scope/name/-/name-1.0.0.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	defer registry.Close()
	t.Setenv("npm_config_registry", registry.URL)
	c, err := newNPMClient(&inputs{stall: time.Minute})
	must(t, err)
	defer c.Close()
	sum := sha512.Sum512([]byte(content))
	p := npmPackage{"@scope/name", "1.0.0", hex.EncodeToString(sum[:])}
	f, err := c.Tarball(t.Context(), p, t.TempDir(), t.TempDir(), download.NewReporter(nil))
	must(t, err)
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil || string(got) != content {
		t.Errorf("%q, %v", got, err)
	}
}
