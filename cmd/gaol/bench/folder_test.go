package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// newFolder removes stale folders, which no process has locked, and keeps the others.
func TestLeftFolders(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	left, link := filepath.Join(parent, folderPrefix+"left"), filepath.Join(parent, folderPrefix+"link")
	if err := os.MkdirAll(filepath.Join(left, "programs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	first, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{left: false, link: true, elsewhere: true, first.path: true, second.path: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it to exist: %t", path, err, want)
		}
	}
	for _, f := range []*folder{first, second} {
		if err := f.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(f.path); !os.IsNotExist(err) {
			t.Errorf("%s: %v after close", f.path, err)
		}
	}
}
