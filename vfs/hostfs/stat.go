package hostfs

import "golang.org/x/sys/unix"

// Stat describes the file that a path leads to.
func (f *FS) Stat(path string) (*Info, error) { return f.stat("stat", path, 0) }

// Lstat is like Stat, but describes a link itself.
func (f *FS) Lstat(path string) (*Info, error) { return f.stat("lstat", path, unix.O_NOFOLLOW) }

func (f *FS) stat(op, path string, flags uint64) (info *Info, err error) {
	err = f.onNode(op, path, flags, func(n *node) error {
		info = f.info(path, &n.stat)
		return nil
	})
	return info, err
}

// Exists reports whether a path leads to a file. A dangling link does not. An error means
// that the answer is unknown.
func (f *FS) Exists(path string) (bool, error) {
	_, err := f.Stat(path)
	if isMissing(unwrapped(err)) {
		return false, nil
	}
	return err == nil, err
}

// ReadLink returns the text of a link. The guest chose it: it need not be a path.
func (f *FS) ReadLink(path string) (text string, err error) {
	err = f.onNode("readlink", path, unix.O_NOFOLLOW, func(n *node) error {
		if n.kind() != unix.S_IFLNK {
			return unix.EINVAL // for a descriptor, the kernel would return ENOENT
		}
		text, err = readLink(n.fd, "")
		return err
	})
	return text, err
}

// readLink reads the link name in the folder dir, or the link dir if name is empty.
func readLink(dir int, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, text)
	if err != nil {
		return "", err
	}
	return string(text[:n]), nil
}
