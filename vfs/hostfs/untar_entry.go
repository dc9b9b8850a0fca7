package hostfs

import (
	"archive/tar"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// entryPath checks the name of an entry and returns its path below the target folder, which
// is "/" itself. The path is a new string, because the name may be part of a header of 1 MiB.
func entryPath(name string) (string, error) {
	path := "/" + strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if path == "/." {
		path = "/"
	}
	if len(path) >= unix.PathMax {
		return "", unix.ENAMETOOLONG
	}
	if _, err := vfs.ParsePath(path); err != nil || name == "" || name == "/" {
		return "", ErrEntryName
	}
	return path, nil
}

// place opens the folder of an entry, and makes missing ones. It follows no links: one in the
// archive could lead the entries after it out of the target folder.
func (u *unpacker) place(path string) (place, error) {
	p, err := locateUnmounted(u.base, path)
	if err == unix.ENOENT {
		if err := mkdirParent(u.base, path, folderMode); err != nil {
			return noPlace, err
		}
		return locateUnmounted(u.base, path)
	}
	return p, err
}

// finish sets the permissions and times of folders, the innermost first.
func (u *unpacker) finish() error {
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(u.folders))) {
		err := u.step(func() error {
			return onNode(u.base, path, 0, func(n *node) error {
				if !n.isFolder() {
					return nil
				}
				if err := n.chmod(u.folders[path].bits); err != nil {
					return err
				}
				return setTime(unix.AT_FDCWD, n.link(), u.folders[path].modified, 0)
			})
		})
		// A folder that the guest has moved or replaced does not change.
		if err != nil && err != unix.ENOENT && err != unix.ELOOP && err != unix.ENOTDIR {
			return &EntryError{path[1:], err}
		}
	}
	return nil
}

func (u *unpacker) symlink(path string, h *tar.Header) error {
	if err := checkLink(h.Linkname); err != nil {
		return err
	}
	p, err := u.place(path)
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

// removeOld removes an existing file or link at a place.
func removeOld(p place) error {
	if err := unix.Unlinkat(p.dir, p.name, 0); err != unix.ENOENT {
		return err
	}
	return nil
}

func (u *unpacker) hardLink(path, name string) error {
	target, err := entryPath(name)
	if err != nil || target == "/" || target == path {
		return ErrEntryName
	}
	return onNode(u.base, target, unix.O_NOFOLLOW, func(n *node) error {
		if n.kind() != unix.S_IFREG {
			return ErrEntryKind
		}
		p, err := u.place(path)
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
	})
}

func sameFile(a, b *unix.Statx_t) bool {
	return a.Ino == b.Ino && a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor
}

func (u *unpacker) file(path string, h *tar.Header, in *tar.Reader) error {
	if h.Size > u.bytes-u.report.Bytes {
		return &LimitError{"bytes", u.bytes}
	}
	u.in.left += h.Size
	var d *tempFile
	if err := u.step(func() error {
		p, err := u.place(path)
		if err == nil {
			d, err = u.fs.newTempFile(p, uint32(h.Mode)&0o777)
		}
		if err != nil {
			p.close()
		}
		return err
	}); err != nil {
		return err
	}
	d.modified = h.ModTime
	n, err := u.fs.fill(d, io.LimitReader(in, h.Size)) // io.Copy allocates no more than the limit
	u.report.Bytes += n
	return err
}

// setTime sets the modification time, and sets the access time to now.
func setTime(dir int, name string, modified time.Time, flags int) error {
	at, err := unix.TimeToTimespec(modified)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{{Nsec: unix.UTIME_NOW}, at}, flags)
}
