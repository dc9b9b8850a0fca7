package bench

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is where bare Node works. The process holds a lock on it, which the kernel releases if the process is
// killed, so that the next one removes the folder.
type folder struct {
	path string
	lock *os.File
}

const folderPrefix = "gaol-bench-"

// newFolder creates a folder in parent. It first removes stale folders of the same user, whose processes were killed.
func newFolder(parent string) (*folder, error) {
	left, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, path := range left {
		if f, err := lockFolder(path); err == nil { // not in use
			if err := f.close(); err != nil {
				return nil, err
			}
		}
	}
	for {
		path, err := os.MkdirTemp(parent, folderPrefix)
		if err != nil {
			return nil, err
		}
		f, err := lockFolder(path)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK): // otherwise another process is removing it
			return nil, errors.Join(err, os.Remove(path))
		}
	}
}

// lockFolder locks a folder of this user that exists.
func lockFolder(path string) (*folder, error) {
	lock, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var opened, named unix.Stat_t
	err = cmp.Or(unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.Fstat(int(lock.Fd()), &opened), unix.Lstat(path, &named))
	switch {
	case err != nil:
	case opened.Ino != named.Ino || opened.Dev != named.Dev:
		err = os.ErrNotExist
	case int(opened.Uid) != os.Geteuid():
		err = os.ErrPermission
	default:
		return &folder{path, lock}, nil
	}
	return nil, errors.Join(err, lock.Close())
}

// close removes the folder.
func (f *folder) close() error { return errors.Join(os.RemoveAll(f.path), f.lock.Close()) }
