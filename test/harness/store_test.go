package harness

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/rootfs"
)

func TestMain(m *testing.M) { Main(m) }

// changes are ways to change an image with the folder root.
var changes = map[string]func(root string) error{
	"folder":  func(root string) error { return os.Mkdir(root+"/dir/new", 0o755) },
	"removed": func(root string) error { return os.Remove(root + "/dir/file") },
	"mode":    func(root string) error { return os.Chmod(root+"/dir/file", 0o755) },
	"same times": func(root string) error {
		return errors.Join(os.Truncate(root+"/dir/file", 0), os.Chtimes(root+"/dir/file", time.Time{}, imageTime))
	},
}

var imageTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// imageOf stores an image in a store of the test's own, and returns its root.
func imageOf(t *testing.T, dir string) (root string) {
	t.Helper()
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	i, err := store.Add(t.Context(), nil, func(root string) error {
		file := filepath.Join(root, "dir/file")
		return errors.Join(os.Mkdir(root+"/dir", 0o755), os.WriteFile(file, []byte("text"), 0o644), os.Chtimes(file, imageTime, imageTime))
	})
	if err != nil {
		t.Fatal(err)
	}
	return i.Root()
}

// childVar names the change that a child of TestChangedImage makes.
const childVar = "GAOL_TEST_CHANGE"

// TestChangedImage runs itself with a separate store, and checks that Main fails exactly if
// the test changes an image.
func TestChangedImage(t *testing.T) {
	if name := os.Getenv(childVar); name != "" {
		if change, found := changes[name]; found {
			if err := change(os.Getenv(childVar + "_ROOT")); err != nil {
				t.Fatal(err)
			}
		}
		imageOf(t, os.Getenv(StoreVar)+"/../other") // which is not watched
		return
	}
	names := []string{"none"}
	for name := range changes {
		names = append(names, name)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "store")
			root := imageOf(t, store)
			child := exec.Command(os.Args[0], "-test.run=^TestChangedImage$")
			child.Env = append(os.Environ(), childVar+"="+name, childVar+"_ROOT="+root, StoreVar+"="+store, ParentVar+"="+Parent+"/child")
			out, err := child.CombinedOutput()
			fails := strings.Contains(string(out), " changed in the image store:\n  \""+root+"/dir")
			if fails != (err != nil) || fails != (name != "none") || !strings.Contains(string(out), "PASS\n") {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// TestReplacedImage checks that images that were added, removed or built again are no changes.
func TestReplacedImage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(StoreVar, dir)
	root := imageOf(t, dir)
	before, err := listImages(t.TempDir())
	if err != nil || len(before.roots) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Remove(filepath.Base(filepath.Dir(root))); err != nil {
		t.Fatal(err)
	}
	if changed, err := before.changed(); err != nil || len(changed) > 0 {
		t.Errorf("removed: %v, %v", changed, err)
	}
	if again := imageOf(t, dir); again != root {
		t.Fatalf("%s, and then %s", root, again)
	}
	if changed, err := before.changed(); err != nil || len(changed) > 0 {
		t.Errorf("added again: %v, %v", changed, err)
	}
}
