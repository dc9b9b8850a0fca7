package sandboxtools

import (
	"regexp"
	"strings"
	"testing"
)

// A name of the store is never looked for elsewhere.
func TestNamesRegistry(t *testing.T) {
	for reference, want := range map[string]bool{
		"registry.example/app:1": true, "127.0.0.1:5000/a/b": true, "localhost:5000/app": true,
		"allowed": false, "app:1": false, "library/app": false, "sha256:0123": false, "": false, "app.v1": false,
	} {
		if got := namesRegistry(reference); got != want {
			t.Errorf("%q: %v", reference, got)
		}
	}
}

func TestPulledName(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`) // of rootfs
	seen := map[string]string{}
	for _, reference := range []string{"registry.example/app:1", "registry.example/app-1", "Registry.example/APP:1", "r.example/" + strings.Repeat("x", 300), "r.example/ä@sha256:0"} {
		name := pulledName(reference)
		if !form.MatchString(name) || seen[name] != "" {
			t.Errorf("%s and %s are %s", reference, seen[name], name)
		}
		seen[name] = reference
	}
}
