package sandboxtools

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"gaol/rootfs"
)

// A name in the store never leads to a registry.
func TestHasRegistryHost(t *testing.T) {
	for reference, want := range map[string]bool{
		"registry.example/app:1": true, "127.0.0.1:5000/a/b": true, "localhost:5000/app": true,
		"allowed": false, "app:1": false, "library/app": false, "sha256:0123": false, "": false, "app.v1": false,
	} {
		if got := hasRegistryHost(reference); got != want {
			t.Errorf("%q: %v", reference, got)
		}
	}
}

func TestImageSources(t *testing.T) {
	t.Chdir("/srv")
	for entry, want := range map[string]string{
		"allowed": "", "app.tar": "", "sha256:0123": "", "0123abcd": "", "registry.example/app:1": "docker://registry.example/app:1",
		"docker://app:1": "docker://app:1", "/a/../b": "/b", "./app.tar": "/srv/app.tar", "../x": "/x",
	} {
		got, err := imageSources([]string{entry})
		if source, listed := got[entry]; err != nil || !listed || source != want {
			t.Errorf("%q: %q, %v", entry, got, err)
		}
	}
	for _, entry := range []string{"", "app:1", "library/app", "images/app.tar"} {
		if _, err := New(Options{Images: []string{entry}}); err == nil || !strings.Contains(err.Error(), "docker://") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestImageCodes(t *testing.T) {
	for _, row := range imageCodes {
		err := imageError(&rootfs.StepError{Op: "import s", Step: "open", Err: row.cause})
		if err.Code != row.code || err.Code == Internal || !errors.Is(err, row.cause) || !strings.Contains(err.Error(), row.cure) {
			t.Errorf("%v: %v", row.cause, err)
		}
	}
	if err := imageError(errors.New("x")); err.Code != Internal {
		t.Error(err)
	}
}

func TestImportName(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`) // of names in package rootfs
	seen := map[string]string{}
	for _, reference := range []string{"registry.example/app:1", "registry.example/app-1", "Registry.example/APP:1", "r.example/" + strings.Repeat("x", 300), "r.example/ä@sha256:0"} {
		name := importName(reference)
		if !form.MatchString(name) || seen[name] != "" {
			t.Errorf("%s and %s have the name %s", reference, seen[name], name)
		}
		seen[name] = reference
	}
}
