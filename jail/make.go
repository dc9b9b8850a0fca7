package jail

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotInMount is wrapped by the error of a place in a mount that its source does not
// have, and that the guest may not make there.
var ErrNotInMount = errors.New("can't be made in the mount of")

// make makes the place and what is above it. What is made in a folder of the guest's is
// the guest's, but for what is hidden and leads there: that can be entered, and no more.
//
// In a mount that is read and written, it is made in the host's folder, with the guest's
// own rights. Others may change that folder meanwhile, so it is gone through by
// descriptors, and no link is followed.
func (c *covers) make(p Place) error {
	f, err := c.reach(p, false)
	if err == nil {
		f.Close()
	}
	return err
}

// makeGuests makes the place the guest's own, where it is missing.
func (c *covers) makeGuests(p Place) error {
	there, err := c.has(p.Path)
	if there || err != nil {
		return err
	}
	f, err := c.reach(p, true)
	if err == nil {
		f.Close()
	}
	return err
}

// has reports whether the path is there, links followed as for a guest, but for the last.
func (c *covers) has(path string) (bool, error) {
	root, err := openFD(stageRoot, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	defer root.Close()
	f, err := OpenIn(root, path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		return false, &os.PathError{Op: "cover", Path: path, Err: err}
	}
	f.Close()
	return true, nil
}

// write writes a file of the guest's, and makes the folders above it.
func (c *covers) write(f File) error {
	file, err := c.reach(Place{Path: f.Path}, true)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // a named pipe would wait for a reader
		return errors.Join(err, &os.PathError{Op: "write", Path: f.Path, Err: syscall.EINVAL})
	}
	err = c.inside(f.Path, func() error { return fill(throughFD(file), f) })
	if err != nil && !errors.Is(err, ErrNotInMount) {
		err = &os.PathError{Op: "write", Path: f.Path, Err: err}
	}
	return err
}

func fill(path string, f File) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = to.Write(f.Data)
	return errors.Join(err, to.Chmod(f.Mode), to.Close())
}

// throughFD names what is open, wherever it is by now.
func throughFD(f *os.File) string { return "/proc/thread-self/fd/" + strconv.Itoa(int(f.Fd())) }

// reach opens a place by O_PATH, and makes what is missing. With own it is the guest's
// wherever it is made.
func (c *covers) reach(p Place, own bool) (*os.File, error) {
	dir, err := openFD(stageRoot, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	at := "/"
	for name := range strings.SplitSeq(p.Path[1:], "/") {
		at = filepath.Join(at, name)
		isLast := at == p.Path
		next, err := c.enter(dir, Place{at, p.Tree || !isLast}, own && isLast)
		dir.Close()
		if errors.Is(err, ErrNotInMount) {
			return nil, err
		}
		if err != nil {
			return nil, &os.PathError{Op: "cover", Path: p.Path, Err: err}
		}
		dir = next
	}
	return dir, nil
}

// enter opens the place, which is in dir.
func (c *covers) enter(dir *os.File, p Place, own bool) (*os.File, error) {
	name := cmp.Or(filepath.Base(p.Path), ".")
	f, err := openIn(dir, name)
	if errors.Is(err, unix.ENOENT) {
		if err := c.makeIn(dir, p, own); err != nil {
			return nil, err
		}
		f, err = openIn(dir, name)
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

func openIn(dir *os.File, name string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// makeIn makes an empty file or folder in dir.
func (c *covers) makeIn(dir *os.File, p Place, own bool) error {
	var above unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &above); err != nil {
		return err
	}
	at := filepath.Join(throughFD(dir), filepath.Base(p.Path))
	if err := c.inside(p.Path, func() error { return makeAs(at, p.Tree, 0o755) }); err != nil {
		return err
	}
	owned := c.canChange(&above) || c.passages[filepath.Dir(p.Path)]
	root := c.guest - GuestUID
	switch m := c.mountAround(p.Path); {
	case m != nil && m.Access == ReadWrite: // it is the guest's already
		return nil
	case c.spec.NotOwn != nil && c.spec.NotOwn(p.Path):
	case owned && !own && c.spec.hides(p.Path):
		c.passages[p.Path] = true
	case owned || own:
		return os.Lchown(at, c.guest, root+GuestGID)
	}
	return os.Lchown(at, root, root)
}

// mountAround is the mount that the path is in, and nil if there is none.
func (c *covers) mountAround(path string) (found *Mount) {
	for i := range c.spec.Mounts {
		m := &c.spec.Mounts[i]
		if isBelow(path, m.Target) && (found == nil || len(m.Target) >= len(found.Target)) {
			found = m
		}
	}
	return found
}

// inside does something at a path, as the guest if it is in a mount that is read and
// written: of other ids than those that the mount maps the kernel makes nothing (EOVERFLOW).
func (c *covers) inside(path string, do func() error) error {
	m := c.mountAround(path)
	if m == nil {
		return do()
	}
	var err error
	if m.Access == ReadWrite {
		err = c.asGuest(do)
	} else {
		err = do()
	}
	for _, refusal := range []unix.Errno{unix.EROFS, unix.EACCES, unix.EPERM} {
		if errors.Is(err, refusal) {
			// The errno is not wrapped: what is amiss is not what it mostly tells of.
			return fmt.Errorf("%s %w %s (%s): make it in the mount's source, or have the mount be copy-on-write", path, ErrNotInMount, m.Target, refusal.Error())
		}
	}
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err // by the path of a descriptor
	}
	return err
}

// asGuest calls do with the guest's rights over files. With another fsuid than 0 the
// kernel takes the capabilities over files out of the thread's, and gives them back with
// it (capabilities(7)).
//
// Preconditions: those of stage.
func (c *covers) asGuest(do func() error) error {
	defer setFileIDs(setFileIDs(c.guest, c.guest-GuestUID+GuestGID))
	if uid, gid := setFileIDs(-1, -1); uid != c.guest || gid != c.guest-GuestUID+GuestGID { // -1 is no id, and changes nothing
		return errors.New("setfsuid: has no effect")
	}
	return do()
}

// setFileIDs returns the earlier ones. They are a thread's.
func setFileIDs(uid, gid int) (oldUID, oldGID int) {
	oldGID, _ = unix.SetfsgidRetGid(gid) // whether it took effect is asked afterwards
	oldUID, _ = unix.SetfsuidRetUid(uid)
	return oldUID, oldGID
}

// makeAs makes an empty file or folder with that mode, whatever the host's umask.
func makeAs(path string, folder bool, mode os.FileMode) (err error) {
	umask := unix.Umask(0) // the thread's own: see stage
	defer unix.Umask(umask)
	if folder {
		return os.Mkdir(path, mode)
	}
	if err := unix.Mknod(path, unix.S_IFREG|uint32(mode&0o666), 0); err != nil {
		return &os.PathError{Op: "make", Path: path, Err: err}
	}
	return nil
}
