package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file at the socket's path is removed only if it is a socket that a server has left.
func TestListenUnixKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := net.Listen("unix", filepath.Join(dir, "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	foreign := filepath.Join(dir, "foreign")
	leaveSocket(t, foreign)
	if err := errors.Join(os.Lchown(foreign, 61001, 61001), os.Symlink(victim, dir+"/link"), os.Symlink(dir+"/live", dir+"/to-live"), os.Symlink(dir+"/none", dir+"/dangling"), os.Mkdir(dir+"/folder", 0o755), syscall.Mkfifo(dir+"/fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"victim", "live", "foreign", "link", "to-live", "dangling", "folder", "fifo"} {
		before, _ := os.Lstat(filepath.Join(dir, name))
		l, err := listenUnix(filepath.Join(dir, name), "root")
		if err == nil {
			t.Errorf("%s: listens", name)
			l.Close()
		}
		if after, err := os.Lstat(filepath.Join(dir, name)); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
			t.Errorf("%s: changed: %v, %v", name, after, err)
		}
	}
	if _, err := os.Lstat(dir + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a dangling link was followed")
	}
}

// leaveSocket makes a socket on which no server listens.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// The socket of a killed server is replaced, with the mode and group from the start.
func TestListenUnixReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "s")
	for range 2 {
		l, err := listenUnix(path, "daemon")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		gid, _ := groupID("daemon")
		if st := info.Sys().(*syscall.Stat_t); info.Mode() != os.ModeSocket|0o660 || int(st.Gid) != gid || int(st.Uid) != os.Geteuid() || gid == 0 {
			t.Errorf("%v of %d:%d", info.Mode(), st.Uid, st.Gid)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A folder in which other users can replace the socket is refused.
func TestListenUnixInFolderOfOthers(t *testing.T) {
	for mode, ok := range map[os.FileMode]bool{0o755: true, 0o777: false, 0o775: false, 0o777 | os.ModeSticky: true} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		l, err := listenUnix(dir+"/s", "root")
		if (err == nil) != ok {
			t.Errorf("%v: %v", mode, err)
		}
		if err == nil {
			l.Close()
		}
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 61001, 61001); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(dir+"/s", "root"); err == nil || !strings.Contains(err.Error(), "replace") {
		t.Error(err)
	}
	if _, err := listenUnix(t.TempDir()+"/s", "no-such-group"); err == nil {
		t.Error("an unknown group")
	}
}
