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

// EnsureFolder makes the folder p and its missing parents. It replaces links and files on
// the path by folders.
func (t *Tree) EnsureFolder(p string) error {
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

// EmptyFolder makes p an empty folder, and makes its missing parents. It fails if a parent
// is a link or a file.
func (t *Tree) EmptyFolder(p string) error {
	above, err := t.walk(path.Dir(p), func(d *os.File, name string) error {
		if is, err := kind(d, name); err != nil || is != 0 {
			return errors.Join(err, fmt.Errorf("%w: %q in %s is not a folder", ErrRefused, name, p))
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

// walk opens the folder p without following links. Where a folder is missing or not a
// folder, it calls repair, and then opens it. The caller closes the folder.
func (t *Tree) walk(p string, repair func(d *os.File, name string) error) (*os.File, error) {
	d, err := t.open("/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	for _, name := range elements(p) {
		is, err := kind(d, name)
		if err == nil && is != unix.S_IFDIR {
			err = repair(d, name)
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

// OpenFile opens the regular file at the guest path p for reading. It follows links. The
// error wraps fs.ErrNotExist if p does not exist or is not a regular file.
func (t *Tree) OpenFile(p string) (*os.File, error) {
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

// GuestPath returns the guest path of an open file of the tree, with all links resolved.
func (t *Tree) GuestPath(f *os.File) (string, error) {
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

// IsFolder reports whether p is a folder. It follows no link.
func (t *Tree) IsFolder(p string) bool {
	d, err := t.walk(p, func(*os.File, string) error { return fs.ErrNotExist })
	if err != nil {
		return false
	}
	d.Close()
	return true
}
