package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listenUnix listens on a socket that root and a group may connect to. A socket of a server that has
// been killed is replaced.
func listenUnix(path, group string) (net.Listener, error) {
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := errors.Join(checkSocketDir(filepath.Dir(path)), removeStaleSocket(path)); err != nil {
		return nil, err
	}
	return listenAsGroup(path, gid)
}

// groupID returns the id of a group: root's for the default group if that does not exist.
func groupID(group string) (int, error) {
	g, err := user.LookupGroup(group)
	if errors.As(err, new(user.UnknownGroupError)) && group == "gaol" {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// checkSocketDir rejects a folder in which other users could replace the socket with their own.
func checkSocketDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner != 0 && owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s: other users could replace the socket: only root may be able to write to its folder", dir)
	}
	return nil
}

// removeStaleSocket removes a socket of this user on which no server listens.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return fmt.Errorf("%s exists, and is not a socket of a former server", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("%s: another server listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// listenAsGroup listens on a socket with mode 0660 that belongs to a group from the start. Changing the
// path afterwards could change another file, which a user has put there.
func listenAsGroup(path string, gid int) (net.Listener, error) {
	goruntime.LockOSThread() // the fsgid is per thread
	defer goruntime.UnlockOSThread()
	old, _ := unix.SetfsgidRetGid(gid)
	defer func() { _, _ = unix.SetfsgidRetGid(old) }()
	if now, _ := unix.SetfsgidRetGid(-1); now != gid { // -1 is not an id, and changes nothing
		return nil, fmt.Errorf("%s: may not give the socket to group %d", path, gid)
	}
	umask := syscall.Umask(0o117)
	defer syscall.Umask(umask)
	return net.Listen("unix", path)
}
