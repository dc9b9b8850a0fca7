package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs"
)

// addImage stores an image with a folder and a file.
func addImage(t *testing.T, store *rootfs.Store, name string) *rootfs.Image {
	t.Helper()
	i, err := store.Add(t.Context(), []string{name}, func(root string) error {
		return errors.Join(os.Mkdir(filepath.Join(root, "run"), 0o755), os.WriteFile(filepath.Join(root, "file"), []byte(name), 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestProbeImageFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	check := func(status Status, detail string) Check {
		t.Helper()
		c := probeImageFiles(&examination{ctx: t.Context(), options: Options{Store: dir}, root: isRoot()})
		if c.Status != status || !strings.Contains(c.Detail, detail) || (c.Status == OK) != (c.Cure == "") {
			t.Errorf("got %+v, want %s with %q", c, status, detail)
		}
		return c
	}
	check(OK, "samples of 0 images are unchanged")
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	app, first := addImage(t, store, "app"), addImage(t, store, "default")
	check(OK, "samples of 2 images are unchanged")
	// As an OCI runtime makes missing mount points.
	added := filepath.Join(app.Root(), "run/\n")
	if err := os.Mkdir(added, 0o755); err != nil {
		t.Fatal(err)
	}
	c := check(Degraded, `app: 1 differences, first "/run/\n" (added)`)
	if want := "gaol image rm " + strings.TrimPrefix(app.ID, "sha256:")[:12] + ", and then gaol image build"; !strings.Contains(c.Cure, want) {
		t.Errorf("the cure is %q, want %q in it", c.Cure, want)
	}
	if err := errors.Join(os.Remove(added), os.Truncate(filepath.Join(first.Root(), "file"), 0)); err != nil {
		t.Fatal(err)
	}
	check(Degraded, `default: 1 differences, first "/file" (content)`)
	list := filepath.Join(filepath.Dir(first.Root()), "files")
	for _, change := range []func() error{
		func() error { return os.WriteFile(list, nil, 0o600) },
		func() error { return os.Remove(list) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		check(Degraded, "default: verify image "+first.ID+": its image.json or list of files was changed")
	}
}
