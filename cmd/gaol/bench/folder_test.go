package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// newFolder removes the folders of processes that have ended, and keeps all others.
func TestLeftFolders(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	ended := 1 << 30 // above the kernel's largest pid
	name := func(pid int, end string) string {
		return filepath.Join(parent, fmt.Sprintf("%s%d-%s", folderPrefix, pid, end))
	}
	left, used, link, other := name(ended, "1"), name(os.Getppid(), "1"), name(ended, "link"), filepath.Join(parent, folderPrefix+"other")
	for _, path := range []string{filepath.Join(left, "programs"), used, other} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	own, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{left: false, link: false, used: true, other: true, elsewhere: true, own: true, second: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it to exist: %t", path, err, want)
		}
	}
}
