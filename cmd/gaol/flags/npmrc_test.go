package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// configure gives npm a home, a project and variables, and no other configuration. It
// returns the project's folder.
func configure(t *testing.T, user, project string, variables ...string) string {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(strings.ToLower(name), "npm_config_") {
			t.Setenv(name, "")
		}
	}
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("npm_config_globalconfig", filepath.Join(home, "npmrc"))
	for i := 0; i < len(variables); i += 2 {
		t.Setenv(variables[i], variables[i+1])
	}
	for file, text := range map[string]string{filepath.Join(home, ".npmrc"): user, filepath.Join(dir, ".npmrc"): project} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		name, user, project string
		variables           []string
		want                []string
	}{
		{"none", "", "", nil, []string{"registry.npmjs.org:443"}},
		{"of the user", "registry=https://npm.example.com/\n", "", nil, []string{"npm.example.com:443"}},
		{"with a port and a path", "registry = http://npm.example.com:4873/repository/npm", "", nil, []string{"npm.example.com:4873"}},
		{"plain HTTP", "registry=http://npm.example.com", "", nil, []string{"npm.example.com:80"}},
		{"of a scope", "@acme:registry=https://npm.acme.example/\n@b:registry=https://npm.acme.example/b", "", nil, []string{"npm.acme.example:443", "registry.npmjs.org:443"}},
		{"of the project", "registry=https://a.example/\n@acme:registry=https://c.example/", "registry=https://b.example/", nil, []string{"b.example:443", "c.example:443"}},
		{"of a variable", "registry=https://a.example/", "registry=https://b.example/", []string{"NPM_CONFIG_REGISTRY", "https://c.example/"}, []string{"c.example:443"}},
		{"an address", "registry=http://10.1.2.3:4873/", "", nil, []string{"10.1.2.3:4873"}},
		{"an IPv6 address", "registry=http://[fd00::1]:4873/", "", nil, []string{"[fd00::1]:4873"}},
		{"quotes and comments", "; registry=https://x.example\n# registry=https://x.example\nregistry=\"https://A.example/\"\n@b:registry='https://b.example'\n@c:registry=https://c.example/ ; c",
			"", nil, []string{"a.example:443", "b.example:443", "c.example:443"}},
		{"a variable in a file", "registry=https://${GAOL_TEST_HOST}/", "", []string{"GAOL_TEST_HOST", "v.example"}, []string{"v.example:443"}},
		{"a section", "registry=https://a.example/\r\n[section]\nregistry=https://b.example/", "", nil, []string{"a.example:443"}},
		{"secrets", "//npm.example.com/:_authToken=sesame\n_password=sesame\nregistry=https://user:sesame@npm.example.com/?sesame", "", nil, []string{"npm.example.com:443"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := registryAddresses(configure(t, tc.user, tc.project, tc.variables...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A project that is not named is ignored: a guest may have written its files.
func TestOtherProject(t *testing.T) {
	t.Chdir(configure(t, "", "registry=https://evil.example/"))
	got, err := registryAddresses("")
	if diff := cmp.Diff([]string{"registry.npmjs.org:443"}, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestAddressesRefused(t *testing.T) {
	for _, tc := range []struct{ registry, want string }{
		{"https://user:sesame@a b/", "not an http or https URL"},
		{"https://user:sesame@host:port/", "not an http or https URL"},
		{"ftp://user:sesame@a.example/", "not an http or https URL"},
		{"ftp://user:sesame@a.example:80/", "not an http or https URL"},
		{"sesame", "not an http or https URL"},
		{"https://${GAOL_TEST_UNSET}sesame/", "not an http or https URL"},
		{"http://user:sesame@localhost:4873", "which no guest reaches"},
		{"http://a.localhost/", "which no guest reaches"},
		{"http://127.1.2.3:4873", "which no guest reaches"},
		{"http://[::1]:4873", "which no guest reaches"},
		{"http://[::ffff:127.0.0.1]:4873", "which no guest reaches"},
		{"http://0.0.0.0:4873", "which no guest reaches"},
	} {
		configure(t, "@a:registry="+tc.registry+"\n", "")
		got, err := registryAddresses("")
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "@a:registry of /") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %q, error %v", tc.registry, got, err)
		}
	}
	if _, err := registryAddresses(configure(t, strings.Repeat("; comment\n", 1<<20/10+1), "")); err == nil || !strings.Contains(err.Error(), "more than 1m") {
		t.Errorf("a long file: error %v", err)
	}
}
