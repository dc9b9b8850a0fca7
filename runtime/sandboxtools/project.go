package sandboxtools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// projectFlags open a folder without any effect on it.
const projectFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// withinBase is how a folder below the base is found: no link leads anywhere, as guests
// may have made it, and no "..".
const withinBase = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func openBase(path string) (*os.File, error) {
	fd, err := unix.Open(path, projectFlags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// project opens the folder that projectOutPath means, and makes what is missing of it. The
// file's name is its path. The caller closes it.
func (t *Toolbox) project(path string) (*os.File, error) {
	const place = "projectOutPath"
	if t.base == nil {
		return nil, refuse(Permission, place, "no folder of the host's can be shared: there is no ProjectBase")
	}
	inside := path
	if base := filepath.Clean(t.o.ProjectBase); filepath.IsAbs(path) {
		rel, err := filepath.Rel(base, path)
		if err != nil {
			return nil, &Error{Code: InvalidArgument, Place: place, Err: err}
		}
		inside = rel
	}
	// Any ".." that is left by Clean leads out; one within it goes up by the text alone.
	if inside = filepath.Clean(inside); inside == "." || !filepath.IsLocal(inside) {
		return nil, refuse(Permission, place, "it is not below the folder for projects")
	}
	fd, err := makeBelow(int(t.base.Fd()), inside)
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV):
		return nil, refuse(Permission, place, "a link is in it: %w", err)
	case errors.Is(err, unix.ENOTDIR):
		return nil, refuse(NotDirectory, place, "a part of it is no folder: %w", err)
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, &Error{Code: InvalidArgument, Place: place, Err: err}
	case err != nil:
		return nil, &Error{Code: Internal, Place: place, Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(t.o.ProjectBase, inside)), nil
}

// makeBelow opens a folder below another one, by one component after the other: what
// was checked is what is open. Folders are made with 0755.
func makeBelow(base int, path string) (int, error) {
	dir := -1
	for name := range strings.SplitSeq(path, "/") {
		at := dir
		if at < 0 {
			at = base
		}
		fd, err := openOrMake(at, name)
		if dir >= 0 {
			unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir = fd
	}
	return dir, nil
}

// raced is how often openat2 is tried where something was renamed meanwhile (EAGAIN).
const raced = 100

func openOrMake(dir int, name string) (int, error) {
	how := unix.OpenHow{Flags: projectFlags, Resolve: withinBase}
	for i := 0; ; i++ {
		fd, err := unix.Openat2(dir, name, &how)
		switch {
		case err == nil:
			return fd, nil
		case i == raced || err != unix.ENOENT && err != unix.EAGAIN && err != unix.EINTR:
			return -1, err
		}
		if err == unix.ENOENT {
			if err := unix.Mkdirat(dir, name, 0o755); err != nil && err != unix.EEXIST {
				return -1, err
			}
		}
	}
}
