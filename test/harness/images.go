package harness

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"gaol/rootfs"
	"gaol/runtime"
)

// DefaultImage is the image that tests use.
func DefaultImage(t testing.TB) *rootfs.Image {
	t.Helper()
	store, err := rootfs.Open(os.Getenv(StoreVar))
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Ensure(t.Context(), os.Getenv(ImageVar), rootfs.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// LinkDefaultImage makes a store with the default image, which is a symbolic link to that of all tests: hard links would change the
// times of its files.
func LinkDefaultImage(t testing.TB, dir string) {
	t.Helper()
	image := DefaultImage(t)
	folder := filepath.Dir(image.Root())
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "images"), 0o755), os.Mkdir(filepath.Join(dir, "names"), 0o755),
		os.Symlink(folder, filepath.Join(dir, "images", filepath.Base(folder))))
	for _, name := range image.Names {
		err = errors.Join(err, os.Symlink(filepath.Join("../images", filepath.Base(folder)), filepath.Join(dir, "names", name)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// BusyboxImage writes an archive as docker save does, of an image with busybox alone.
func BusyboxImage(t testing.TB) string {
	t.Helper()
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	var blob bytes.Buffer
	w := tar.NewWriter(&blob)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o4755, Size: int64(len(program))},
		{Typeflag: tar.TypeLink, Name: "opt/tools/sh", Linkname: "bin/busybox"},
		{Typeflag: tar.TypeSymlink, Name: "home", Linkname: "/etc"},
		{Typeflag: tar.TypeDir, Name: "app/", Mode: 0o700, Uid: 1000},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write(program)
		}
	}
	_ = w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(blob.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", goruntime.GOARCH
	c.Config = v1.Config{Env: []string{"PATH=/opt/tools", "LD_PRELOAD=/x"}, User: "root", WorkingDir: "/app"}
	if image, err = mutate.ConfigFile(image, c); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("registry.example/busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "busybox.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		t.Fatal(err)
	}
	return file
}

// ShellImage makes a root file system with busybox alone, for ImportImage: its commands are those that commands names.
func ShellImage(t testing.TB, commands ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shell")
	program, err := os.ReadFile("/bin/busybox")
	if err == nil {
		err = errors.Join(os.MkdirAll(dir+"/bin", 0o755), os.WriteFile(dir+"/bin/busybox", program, 0o755))
	}
	for _, name := range commands {
		err = errors.Join(err, os.Symlink("busybox", dir+"/bin/"+name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// ImportImage imports an image into a separate store, under the name app, and returns
// the store. Idle zygotes, which may use the image, are closed when the test ends.
func ImportImage(t testing.TB, source string, o rootfs.ImportOptions) (store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "store")
	s, err := rootfs.Open(store)
	if err != nil {
		t.Fatal(err)
	}
	o.Name = "app"
	if _, err := s.Import(t.Context(), source, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.CloseIdle(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// SnapshotStore opens the store of snapshots that tests use.
func SnapshotStore(t testing.TB) *rootfs.Store {
	t.Helper()
	store, err := rootfs.Open(os.Getenv(StoreVar))
	if err == nil {
		store, err = store.Snapshots()
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TakeSnapshot takes a snapshot that is removed when the test ends.
func TakeSnapshot(t testing.TB, rt *runtime.NodeRuntime, o runtime.SnapshotOptions) *runtime.Snapshot {
	t.Helper()
	s, err := rt.Snapshot(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := SnapshotStore(t).Remove(s.ID); err != nil && !errors.Is(err, rootfs.ErrNotFound) {
			t.Error(err)
		}
	})
	return s
}

// HostTree makes a folder on the host with files, by their paths. Content of the form
// "-> TARGET" makes a symbolic link.
func HostTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		var err error
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path))
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
