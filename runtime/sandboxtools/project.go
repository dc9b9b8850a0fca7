package sandboxtools

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
)

// projectFlags open a folder as a handle only: nothing in it is read or changed.
const projectFlags = unix.O_PATH | unix.O_DIRECTORY

// project opens the folder of a projectOutPath, and creates missing folders. The name of
// the file is its path below the base. The caller must close it.
func (t *Toolbox) project(path string) (*os.File, error) {
	const place = "projectOutPath"
	if t.base == nil {
		return nil, refuse(Permission, place, "no folder of the host can be shared: Options.ProjectBase is empty")
	}
	inside := filepath.Clean(path) // resolves ".." lexically; any that remains leads out of the base
	if filepath.IsAbs(path) {
		inside, _ = filepath.Rel(t.o.ProjectBase, path) // both are absolute
	}
	if inside == "." || !filepath.IsLocal(inside) {
		return nil, refuse(Permission, place, "not below the folder for projects")
	}
	folder, err := t.mkdirBelow(inside)
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
	return folder, nil
}

// mkdirBelow opens a folder below the base, and creates missing folders with mode 0755. It
// follows no link, as a guest may have created it. os.Root would follow those that stay
// below the base, into the folders of other guests.
func (t *Toolbox) mkdirBelow(path string) (*os.File, error) {
	folder, err := mounts.OpenBeneath(t.base, path, projectFlags)
	if err != unix.ENOENT || path == "." {
		return folder, err
	}
	parent, err := t.mkdirBelow(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := unix.Mkdirat(int(parent.Fd()), filepath.Base(path), 0o755); err != nil && err != unix.EEXIST {
		return nil, err
	}
	return mounts.OpenBeneath(t.base, path, projectFlags)
}
