package hostfs

import (
	"archive/tar"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxName is Linux's NAME_MAX.
const maxName = 255

// entryName checks the name of an entry and returns it without "./" and trailing slash; ""
// for the target folder itself.
func entryName(s string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(s, "./"), "/")
	if name == "." || name == "" && s != "" && s != "/" {
		return "", nil
	}
	if len(name) >= unix.PathMax {
		return "", unix.ENAMETOOLONG
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "" || element == "." || element == ".." || strings.ContainsRune(element, 0):
			return "", ErrEntryName
		case len(element) > maxName:
			return "", unix.ENAMETOOLONG
		}
	}
	return name, nil
}

// parent opens the folder of an entry, and makes missing ones. It follows no links.
func (u *unpacker) parent(name string) (place, error) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		fd, err := openPath(u.base, ".", unix.O_DIRECTORY, noLinks)
		return place{fd, name}, err
	}
	dir := name[:i]
	fd, err := u.openFolder(dir)
	if err == unix.ENOENT {
		if err := u.makeFolder(dir); err != nil {
			return noPlace, err
		}
		fd, err = u.openFolder(dir)
	}
	return place{fd, name[i+1:]}, err
}

func (u *unpacker) openFolder(name string) (int, error) {
	fd, err := openPath(u.base, name, unix.O_DIRECTORY, noLinks)
	if err == unix.ELOOP || err == unix.ENOTDIR {
		return -1, ErrEntryKind
	}
	if err != nil {
		return -1, err
	}
	if err := checkFileSystem(fd); err != nil {
		return -1, err
	}
	return fd, nil
}

// makeFolder makes a missing folder and its missing parents.
func (u *unpacker) makeFolder(name string) error {
	p, err := u.parent(name)
	if err != nil {
		return err
	}
	defer p.close()
	if err := mkdir(p, folderMode); err != unix.EEXIST {
		return err
	}
	return nil
}

func (u *unpacker) folder(name string, e folderAttrs) error {
	if err := u.makeFolder(name); err != nil {
		return err
	}
	fd, err := u.openFolder(name)
	if err != nil {
		return err
	}
	closeFD(fd)
	u.folders[strings.Clone(name)] = e // Clone, because it may be part of a header of 1 MiB
	return nil
}

// finish sets the permissions and times of folders, the innermost first.
func (u *unpacker) finish() error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(u.folders))) {
		err := u.step(func() error {
			n, err := newNode(openPath(u.base, name, 0, noLinks))
			if err != nil {
				return err
			}
			defer n.close()
			if !n.isFolder() {
				return nil
			}
			e := u.folders[name]
			if err := n.chmod(e.bits); err != nil {
				return err
			}
			return setTime(unix.AT_FDCWD, n.link(), e.modified, 0)
		})
		// A folder that the guest has moved or replaced does not change.
		if err != nil && err != unix.ENOENT && err != unix.ELOOP && err != unix.ENOTDIR {
			return &EntryError{name, err}
		}
	}
	return nil
}

// removeOld removes an existing file or link at a place.
func removeOld(p place) error {
	if err := p.checkUnmounted(); err != nil {
		return err
	}
	switch err := unix.Unlinkat(p.dir, p.name, 0); err {
	case nil, unix.ENOENT:
		return nil
	case unix.EISDIR:
		return ErrEntryKind
	default:
		return err
	}
}

func (u *unpacker) symlink(name string, h *tar.Header) error {
	if err := checkLink(h.Linkname); err != nil {
		return err
	}
	p, err := u.parent(name)
	if err != nil {
		return err
	}
	defer p.close()
	if err := removeOld(p); err != nil {
		return err
	}
	if err := unix.Symlinkat(h.Linkname, p.dir, p.name); err != nil {
		return err
	}
	if err := setTime(p.dir, p.name, h.ModTime, unix.AT_SYMLINK_NOFOLLOW); err != unix.ENOENT { // the guest has removed it
		return err
	}
	return nil
}

func (u *unpacker) hardLink(name, target string) error {
	target, err := entryName(target)
	if err != nil || target == "" || target == name {
		return ErrEntryName
	}
	n, err := newNode(openPath(u.base, target, unix.O_NOFOLLOW, noLinks))
	if err == unix.ELOOP {
		return ErrEntryKind
	}
	if err != nil {
		return err
	}
	defer n.close()
	if n.kind() != unix.S_IFREG {
		return ErrEntryKind
	}
	p, err := u.parent(name)
	if err != nil {
		return err
	}
	defer p.close()
	if old, err := statAt(p.dir, p.name); err == nil && sameFile(&old, &n.stat) {
		return nil // already the same file: removing the old name could delete it
	}
	if err := removeOld(p); err != nil {
		return err
	}
	// By descriptor, because the guest may have reused the name.
	return unix.Linkat(unix.AT_FDCWD, n.link(), p.dir, p.name, unix.AT_SYMLINK_FOLLOW)
}

func sameFile(a, b *unix.Statx_t) bool {
	return a.Ino == b.Ino && a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor
}

func (u *unpacker) file(name string, h *tar.Header, in *tar.Reader) error {
	if h.Size > u.bytes-u.report.Bytes {
		return &LimitError{"bytes", u.bytes}
	}
	u.in.left += h.Size
	p := noPlace
	var out *os.File
	if err := u.step(func() (err error) {
		if p, err = u.parent(name); err != nil {
			return err
		}
		out, err = newFile(p)
		return err
	}); err != nil {
		p.close()
		return err
	}
	defer p.close()
	defer out.Close()
	n, err := io.Copy(stepWriter{u.step, int(out.Fd())}, io.LimitReader(in, h.Size+1)) // one more byte than the header says would be an error
	u.report.Bytes += n
	if err == nil && n != h.Size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = u.step(func() error { return setAttrs(int(out.Fd()), uint32(h.Mode)&0o777, h.ModTime) })
	}
	if err != nil {
		// Even if the FS has been closed: no incomplete file must remain in a folder of the host.
		_ = u.fs.guest.act(func() error { return unix.Unlinkat(p.dir, p.name, 0) })
	}
	return err
}

// newFile makes a new file that replaces an existing one.
func newFile(p place) (*os.File, error) {
	if err := removeOld(p); err != nil {
		return nil, err
	}
	fd, err := create(p)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), p.name), nil
}

// setAttrs sets the permissions and the time of a complete file.
func setAttrs(fd int, bits uint32, modified time.Time) error {
	if err := unix.Fchmod(fd, bits); err != nil {
		return err
	}
	return setTime(fd, "", modified, unix.AT_EMPTY_PATH)
}

// setTime sets the modification time, and sets the access time to now.
func setTime(dir int, name string, modified time.Time, flags int) error {
	at, err := unix.TimeToTimespec(modified)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{{Nsec: unix.UTIME_NOW}, at}, flags)
}
