package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder sees to it that p is a folder, as are those above it, and none of them a
// link: what is in the way is removed.
func (t *Tree) Folder(p string) error {
	d, err := t.walk(p, func(d *os.File, name string) error {
		if _, err := prune(d, name, keepNothing); err != nil {
			return err
		}
		return unix.Mkdirat(int(d.Fd()), name, 0o755)
	})
	if err != nil {
		return err
	}
	return d.Close()
}

// Clear makes p a folder with nothing in it. Those above it are made where they are
// missing; one that is a link, or a file, is refused.
func (t *Tree) Clear(p string) error {
	above, err := t.walk(path.Dir(p), func(d *os.File, name string) error {
		if is, err := kind(d, name); err != nil || is != 0 {
			return errors.Join(err, fmt.Errorf("%w: %q, on the way to %s, is no folder", ErrRefused, name, p))
		}
		return unix.Mkdirat(int(d.Fd()), name, 0o755)
	})
	if err != nil {
		return err
	}
	if _, err := prune(above, path.Base(p), keepNothing); err != nil {
		return errors.Join(err, above.Close())
	}
	return errors.Join(unix.Mkdirat(int(above.Fd()), path.Base(p), 0o755), above.Close())
}

// walk opens the folder p without following links. It calls mend where a folder is
// missing, or something else. The folder is the caller's to close.
func (t *Tree) walk(p string, mend func(d *os.File, name string) error) (*os.File, error) {
	d, err := t.open("/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	for _, name := range elements(p) {
		is, err := kind(d, name)
		if err == nil && is != unix.S_IFDIR {
			err = mend(d, name)
		}
		fd := -1
		if err == nil {
			fd, err = unix.Openat(int(d.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		d.Close()
		if err != nil {
			return nil, &os.PathError{Op: "make", Path: p, Err: err}
		}
		d = os.NewFile(uintptr(fd), name)
	}
	return d, nil
}

func elements(p string) []string {
	if p = path.Clean(p); p == "/" || p == "." {
		return nil
	}
	dir, name := path.Split(p)
	return append(elements(dir), name)
}

// File opens the plain file that the guest's path p leads to, for reading. The error
// wraps fs.ErrNotExist if there is none, or another thing.
func (t *Tree) File(p string) (*os.File, error) {
	f, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Path is the guest's path of an open file of the tree, all links resolved.
func (t *Tree) Path(f *os.File) (string, error) {
	real, err := realPath(int(f.Fd()))
	if err != nil {
		return "", err
	}
	p, isBelow := strings.CutPrefix(real, t.path+"/")
	if !isBelow {
		return "", fmt.Errorf("%w: %q is outside", ErrRefused, f.Name())
	}
	return "/" + p, nil
}

// IsFolder says whether p, a name in the root, is a folder and no link.
func (t *Tree) IsFolder(p string) bool {
	d, err := t.walk(p, func(*os.File, string) error { return fs.ErrNotExist })
	if err != nil {
		return false
	}
	d.Close()
	return true
}
