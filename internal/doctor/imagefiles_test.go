package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// examine looks for the image in a store, as Examine does.
func examine(t *testing.T, store string) *examination {
	t.Helper()
	x := &examination{ctx: t.Context(), options: Options{Store: store}, store: store, root: isRoot()}
	x.image, x.imageErr = lookup(store)
	return x
}

// The probe looks for the image that gaol run uses. The name default may belong to another image.
func TestProbeImage(t *testing.T) {
	images, err := rootfs.Open("")
	if err != nil {
		t.Fatal(err)
	}
	used, err := images.Stored(rootfs.BuildOptions{})
	if err != nil {
		t.Skipf("the default image is missing (make image): %v", err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	check := func(want Status, detail string) {
		t.Helper()
		if c := probeImage(examine(t, dir)); c.Status != want || !strings.Contains(c.Detail, detail) {
			t.Errorf("got %+v, want %s with %q", c, want, detail)
		}
	}
	check(Degraded, "not built yet")
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := addImage(t, store, "default")
	check(Degraded, "not built yet")
	for _, name := range append(used.Names, "another") {
		if _, _, err := store.Tag(t.Context(), other.ID, name); err != nil {
			t.Fatal(err)
		}
	}
	check(OK, "Node")
	if _, err := store.Remove("default"); err != nil {
		t.Fatal(err)
	}
	check(OK, "Node")
}

// The probe and a build report the same missing requirement.
func TestProbeToolsAgrees(t *testing.T) {
	for variable, value := range map[string]string{"npm_config_registry": "ftp://registry.example", "PATH": t.TempDir()} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			store, err := rootfs.Open("")
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Build(t.Context(), rootfs.BuildOptions{NodeVersion: rootfs.DefaultNode})
			if err == nil {
				t.Fatal("the image was built")
			}
			for want, image := range map[Status]*rootfs.Image{Missing: nil, Degraded: {}} {
				if c := probeTools(&examination{image: image}); c.Status != want || c.Cure == "" || !strings.HasSuffix(err.Error(), ": "+c.Detail) {
					t.Errorf("got %+v, want %s with %q", c, want, err)
				}
			}
		})
	}
}

// TestProbeReadOnlyStore checks that a store that cannot be written is a problem only for builds.
func TestProbeReadOnlyStore(t *testing.T) {
	if !isRoot() {
		t.Skip("a mount needs root")
	}
	dir := filepath.Join(t.TempDir(), "gaol-test-store") // other tests do not count such mounts
	if err := errors.Join(os.Mkdir(dir, 0o755), unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for want, image := range map[Status]*rootfs.Image{Missing: nil, Degraded: {}} {
		if c := probeStore(&examination{store: dir, image: image}); c.Status != want || !strings.Contains(c.Detail, "can't be written") {
			t.Errorf("got %+v, want %s", c, want)
		}
	}
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
