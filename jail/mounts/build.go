package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// A builder opens files and folders of the guest's root, and creates missing ones. New files
// and folders in a guest folder belong to the guest, except hidden folders that lead to the
// place: the guest can only enter them.
//
// In a ReadWrite mount it creates them in the host's folder, with the guest's rights. Other
// processes may change that folder meanwhile, so paths are walked by descriptor, without
// following links.
type builder struct {
	*Stage
	passages map[string]bool // hidden folders in guest folders, created on the way to a place
}

func newBuilder(s *Stage) *builder { return &builder{Stage: s, passages: map[string]bool{}} }

// create creates the place if it is missing.
func (b *builder) create(p Place, own func(path string) bool) error {
	f, err := b.open(p, own)
	f.Close() // nil if it failed
	return err
}

// createOwned creates the place if it is missing. The guest owns a new one. It follows links
// to the place as for a guest, except the last.
func (b *builder) createOwned(p Place) error {
	root, err := openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := OpenIn(root, p.Path, unix.O_PATH|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return b.create(p, func(at string) bool { return at == p.Path })
	}
	f.Close() // nil if it failed
	if err != nil {
		return &os.PathError{Op: "open", Path: p.Path, Err: err}
	}
	return nil
}

func openRoot() (*os.File, error) { return os.OpenFile(Root, unix.O_PATH|unix.O_DIRECTORY, 0) }

// write writes a file that the guest owns, and creates the folders above it. The guest owns these,
// too, unless they are hidden or in a folder of the guest, whose rules apply.
func (b *builder) write(f File) error {
	file, err := b.open(Place{Path: f.Path}, func(at string) bool {
		inDir := slices.ContainsFunc(b.tree.Dirs, func(d string) bool { return isBelow(at, d) })
		return at == f.Path || !inDir && !b.tree.hides(at)
	})
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // opening a named pipe would wait for a reader
		return errors.Join(err, &os.PathError{Op: "write", Path: f.Path, Err: syscall.EINVAL})
	}
	err = b.asOwner(f.Path, func() error { return overwrite(descriptorPath(file), f) })
	if err != nil && !errors.Is(err, ErrNotInMount) {
		err = &os.PathError{Op: "write", Path: f.Path, Err: err}
	}
	return err
}

func overwrite(path string, f File) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = to.Write(f.Data)
	return errors.Join(err, to.Chmod(f.Mode), to.Close())
}

// descriptorPath is a path of an open file, wherever it has been moved.
func descriptorPath(f *os.File) string {
	return "/proc/thread-self/fd/" + strconv.Itoa(int(f.Fd()))
}

// open opens a place with O_PATH, and creates it, and the folders above it, if they are
// missing. The guest owns those new ones for which own returns true, wherever they are. own may
// be nil.
func (b *builder) open(p Place, own func(path string) bool) (*os.File, error) {
	dir, err := openRoot()
	if err != nil {
		return nil, err
	}
	at := "/"
	for name := range strings.SplitSeq(p.Path[1:], "/") {
		at = filepath.Join(at, name)
		isLast := at == p.Path
		next, err := b.openEntry(dir, Place{at, p.Tree || !isLast}, own != nil && own(at))
		dir.Close()
		if errors.Is(err, ErrNotInMount) {
			return nil, err
		}
		if err != nil {
			return nil, pathError(p.Path, &os.PathError{Op: "open", Path: p.Path, Err: err})
		}
		dir = next
	}
	return dir, nil
}

// openEntry opens a place that is in dir itself.
func (b *builder) openEntry(dir *os.File, p Place, own bool) (*os.File, error) {
	name := filepath.Base(p.Path)
	f, err := OpenBeneath(dir, name, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		if err := b.createEntry(dir, p, own); err != nil {
			return nil, err
		}
		f, err = OpenBeneath(dir, name, unix.O_PATH)
	}
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	switch kind := info.Mode & unix.S_IFMT; {
	case err == nil && p.Tree && kind != unix.S_IFDIR:
		err = syscall.ENOTDIR
	case err == nil && !p.Tree && kind == unix.S_IFDIR:
		err = syscall.EISDIR
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// createEntry creates an empty file or folder in dir.
func (b *builder) createEntry(dir *os.File, p Place, own bool) error {
	var above unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &above); err != nil {
		return err
	}
	path := filepath.Join(descriptorPath(dir), filepath.Base(p.Path))
	if err := b.asOwner(p.Path, func() error { return makeEmpty(path, p.Tree, 0o755) }); err != nil {
		return err
	}
	inGuests := b.guestCanChange(&above) || b.passages[filepath.Dir(p.Path)]
	switch m := b.tree.mountAt(filepath.Dir(p.Path)); {
	case m != nil && m.Access == ReadWrite: // the guest owns it already
		return nil
	case b.tree.NotOwn != nil && b.tree.NotOwn(p.Path):
	case inGuests && !own && b.tree.hides(p.Path):
		b.passages[p.Path] = true
	case inGuests || own:
		return os.Lchown(path, b.guestUID(), b.guestGID())
	}
	return os.Lchown(path, b.rootID, b.rootID)
}

// guestCanChange reports whether the guest can create or rename files in a folder.
func (b *builder) guestCanChange(dir *unix.Stat_t) bool {
	return int(dir.Uid) == b.guestUID() || dir.Mode&0o002 != 0
}

// asOwner calls do, which creates or changes the file at path: as the guest if that is in a
// ReadWrite mount, where the kernel creates nothing for ids that the mount does not map
// (EOVERFLOW).
func (b *builder) asOwner(path string, do func() error) error {
	m := b.tree.mountAt(filepath.Dir(path))
	switch {
	case m == nil:
		return do()
	case m.Access == ReadWrite:
		as := do
		do = func() error { return b.asGuest(as) }
	}
	err := do()
	for _, refusal := range []unix.Errno{unix.EROFS, unix.EACCES, unix.EPERM} {
		if errors.Is(err, refusal) {
			// The errno is not wrapped: callers would attribute it to another cause.
			return fmt.Errorf("%s %w %s (%s): make it in the mount's source, or make the mount copy-on-write", path, ErrNotInMount, m.Target, refusal.Error())
		}
	}
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err // its path names a descriptor in /proc
	}
	return err
}

// asGuest calls do with the guest's rights over files.
//
// Preconditions: see Stage.Open.
func (b *builder) asGuest(do func() error) error {
	uid, gid, err := kernfile.SetFileIDs(b.guestUID(), b.guestGID())
	defer func() { _, _, _ = kernfile.SetFileIDs(uid, gid) }()
	if err != nil {
		return err
	}
	return do()
}

// OpenIn opens path relative to root as if root were the root directory: links and ".."
// can't lead out of it.
func OpenIn(root *os.File, path string, flags uint64) (*os.File, error) {
	return kernfile.Openat2(root, path, flags, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenBeneath opens path, which is relative to dir, without following any link.
func OpenBeneath(dir *os.File, path string, flags uint64) (*os.File, error) {
	return kernfile.Openat2(dir, path, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}
