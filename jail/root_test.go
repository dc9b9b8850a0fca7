package jail

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// Root is the guest's root, and files of the guest have ids of HostIDs.
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
	if first, count := j.HostIDs(); int(st.Uid) != first+mounts.GuestUID || int(st.Gid) != first+mounts.GuestGID || count <= mounts.GuestUID {
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
