package sandboxtools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// projectFlags open a folder as a handle only: nothing in it is read or changed.
const projectFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// withinBase restricts the lookup of a folder below the base: it follows no link, as a
// guest may have created it, and no "..".
const withinBase = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// project opens the folder of a projectOutPath, and creates missing folders. The name of
// the file is its path. The caller must close it.
func (t *Toolbox) project(path string) (*os.File, error) {
	const place = "projectOutPath"
	if t.base == nil {
		return nil, refuse(Permission, place, "no folder of the host can be shared: Options.ProjectBase is empty")
	}
	inside := path
	if base := filepath.Clean(t.o.ProjectBase); filepath.IsAbs(path) {
		rel, err := filepath.Rel(base, path)
		if err != nil {
			return nil, &Error{Code: InvalidArgument, Place: place, Err: err}
		}
		inside = rel
	}
	// Clean resolves ".." lexically; any that remains leads out of the base.
	if inside = filepath.Clean(inside); inside == "." || !filepath.IsLocal(inside) {
		return nil, refuse(Permission, place, "not below the folder for projects")
	}
	fd, err := mkdirBelow(int(t.base.Fd()), inside)
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV):
		return nil, refuse(Permission, place, "contains a link: %w", err)
	case errors.Is(err, unix.ENOTDIR):
		return nil, refuse(NotDirectory, place, "contains a file: %w", err)
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, &Error{Code: InvalidArgument, Place: place, Err: err}
	case err != nil:
		return nil, &Error{Code: Internal, Place: place, Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(t.o.ProjectBase, inside)), nil
}

// mkdirBelow opens a folder below another one, component by component, so that the folder
// that was checked is the one that is open. It creates missing folders with mode 0755.
func mkdirBelow(base int, path string) (int, error) {
	dir := base
	for name := range strings.SplitSeq(path, "/") {
		fd, err := openOrMkdir(dir, name)
		if dir != base {
			unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir = fd
	}
	return dir, nil
}

// maxTries bounds the calls of openat2, which fails with EAGAIN during a rename.
const maxTries = 100

func openOrMkdir(dir int, name string) (int, error) {
	how := unix.OpenHow{Flags: projectFlags, Resolve: withinBase}
	for i := 0; ; i++ {
		fd, err := unix.Openat2(dir, name, &how)
		switch {
		case err == nil:
			return fd, nil
		case i == maxTries || err != unix.ENOENT && err != unix.EAGAIN && err != unix.EINTR:
			return -1, err
		}
		if err == unix.ENOENT {
			if err := unix.Mkdirat(dir, name, 0o755); err != nil && err != unix.EEXIST {
				return -1, err
			}
		}
	}
}
