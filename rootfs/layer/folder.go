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
	dir, name, err := split(p)
	if err != nil || name == "" {
		return err
	}
	if err := t.EnsureFolder(dir); err != nil {
		return err
	}
	d, err := t.folder(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return placeFolder(d, name)
}

// EmptyFolder makes p an empty folder, and makes its missing parents. It fails if a parent
// is a link or a file.
func (t *Tree) EmptyFolder(p string) error {
	d, err := t.folder(path.Join(".", path.Dir(p)))
	if err != nil {
		return err
	}
	defer d.Close()
	// Through a link, the emptied folder would be another one of the image's.
	if real, err := t.GuestPath(d); err != nil || real != path.Dir(p) {
		return errors.Join(err, fmt.Errorf("%w: a parent of %s is a link", ErrRefused, p))
	}
	if _, err := prune(d, path.Base(p), keepNothing); err != nil {
		return err
	}
	return unix.Mkdirat(int(d.Fd()), path.Base(p), 0o755)
}

// IsFolder reports whether the clean path p leads to a folder without following a link.
func (t *Tree) IsFolder(p string) bool {
	d, err := t.open(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer d.Close()
	real, err := t.GuestPath(d)
	return err == nil && real == p
}

// OpenFile opens the regular file at the guest path p for reading. It follows links. The
// error wraps fs.ErrNotExist if p does not exist or is not a regular file.
func (t *Tree) OpenFile(p string) (*os.File, error) {
	// O_NONBLOCK: the open must not wait for a writer if p is a pipe.
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
	p, isBelow := strings.CutPrefix(real+"/", t.path+"/") // with the slashes, the root is below itself
	if !isBelow {
		return "", fmt.Errorf("%w: %q is outside", ErrRefused, f.Name())
	}
	return path.Join("/", p), nil
}
