package hostfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Stat tells about what a path leads to.
func (f *FS) Stat(path string) (*Info, error) { return f.stat("stat", path, false) }

// Lstat is Stat, but tells about a link itself.
func (f *FS) Lstat(path string) (*Info, error) { return f.stat("lstat", path, true) }

func (f *FS) stat(op, path string, nofollow bool) (info *Info, err error) {
	err = f.at(op, path, func(root int) error {
		n, err := lookup(root, path, nofollow)
		if err != nil {
			return err
		}
		defer n.close()
		info = f.info(path, &n.stat)
		return nil
	})
	return info, err
}

// Exists tells whether a path leads to something: a link to nothing doesn't. That it
// can't be told is an error.
func (f *FS) Exists(path string) (bool, error) {
	_, err := f.stat("stat", path, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// ReadLink returns the text of a link, which is the guest's: it may be no path at all.
func (f *FS) ReadLink(path string) (text string, err error) {
	err = f.at("readlink", path, func(root int) error {
		n, err := lookup(root, path, true)
		if err != nil {
			return err
		}
		defer n.close()
		if n.kind() != unix.S_IFLNK {
			return unix.EINVAL // where ENOENT is what the kernel says of a descriptor
		}
		text, err = readLink(n.fd, "")
		return err
	})
	return text, err
}
