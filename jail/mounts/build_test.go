package mounts

import (
	"errors"
	"os"
	"sync"
	"testing"
)

// A path is found through a link with ".." while the host renames files, which makes
// openat2 fail with EAGAIN.
func TestFindWhileTheHostRenames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.MkdirAll(Root+"/a/b", 0o755), os.WriteFile(Root+"/a/file", nil, 0o644), os.Symlink("b/../..", Root+"/a/up"), os.WriteFile(dir+"/0", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var renames sync.WaitGroup
	renames.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = os.Rename(dir+"/0", dir+"/1")
				_ = os.Rename(dir+"/1", dir+"/0")
			}
		}
	})
	defer renames.Wait()
	defer close(done)
	for range 20_000 {
		if err := new(builder).createOwned(Place{Path: "/a/up/a/up/a/file"}); err != nil {
			t.Fatal(err)
		}
	}
}
