package jail

import (
	"errors"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The root is the guest's, and what the guest makes there has the ids that are told.
func TestRoot(t *testing.T) {
	j := newJail(t)
	root, err := j.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p, read := start(t, j, "echo x > /work/file")
	_, err = p.Wait()
	read()
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(root.Fd()), "work/file", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Fatal(err)
	}
	if first, count := j.HostIDs(); int(st.Uid) != first+GuestUID || int(st.Gid) != first+GuestGID || count <= GuestUID {
		t.Errorf("%d:%d, where the jail's are %d from %d on", st.Uid, st.Gid, count, first)
	}
	var host unix.Stat_t
	if err := unix.Stat("/", &host); err != nil || host.Dev == st.Dev {
		t.Error("it is the host's root:", err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if root, err := j.Root(); root != (*os.File)(nil) || !errors.Is(err, ErrClosed) {
		t.Error(root, err)
	}
}

// Whatever the host renames meanwhile, what is there is found by a link with "..".
func TestHasWhileTheHostRenames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.MkdirAll(stageRoot+"/a/b", 0o755), os.WriteFile(stageRoot+"/a/file", nil, 0o644), os.Symlink("b/../..", stageRoot+"/a/up"), os.WriteFile(dir+"/0", nil, 0o644)); err != nil {
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
		if there, err := new(covers).has("/a/up/a/up/a/file"); !there || err != nil {
			t.Fatal(there, err)
		}
	}
}
