package hostfs

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// UntarOptions bound the unpacked files. A zero field means its default.
type UntarOptions struct {
	Bytes   int64 // of files' content, holes included; default 1 GiB
	Entries int   // default Limits.Entries
}

// UntarReport counts the unpacked files.
type UntarReport struct {
	Entries int   `json:"entries" doc:"Files, folders and links."`
	Bytes   int64 `json:"bytes" doc:"Of the content of files."`
}

// Reasons why an entry of an archive is refused.
var (
	ErrEntryName = errors.New("not a relative, clean path")
	ErrEntryType = errors.New("not a file, folder or link")
	ErrEntryKind = errors.New("a folder and a file cannot replace each other")
)

// Untar unpacks an archive into an existing folder. Files, links and folders belong to the
// guest, whatever their owners in the archive. They get the times of the archive; set-id bits are
// dropped. A file or link replaces an existing one of its name, a file when it is complete. An
// existing folder keeps its content.
//
// The names must be relative and clean, except for a leading "./" and a trailing "/". Untar
// follows no links: entries below a link are refused. A symbolic link may have any text. A
// hard link must point to a file in the folder. Devices, FIFOs and other types of entries
// are refused.
//
// Untar stops at the first refused entry with an error that names it, and at a bound with a
// *LimitError, and reads no further. Files unpacked before stay; an incomplete file is
// removed.
func (f *FS) Untar(r io.Reader, dir string, o UntarOptions) (UntarReport, error) {
	u := &unpacker{
		fs: f, path: dir, base: base{-1, noLinks}, folders: map[string]folderAttrs{},
		bytes: cmp.Or(o.Bytes, defaultTarBytes), entries: cmp.Or(o.Entries, f.limits.Entries),
	}
	if u.bytes < 0 || u.entries < 0 {
		return u.report, &fs.PathError{Op: "untar", Path: dir, Err: fs.ErrInvalid}
	}
	err := f.onNode("untar", dir, 0, func(n *node) (err error) {
		if !n.isFolder() {
			return unix.ENOTDIR
		}
		u.base.fd, err = base{fd: n.fd}.open(".", 0)
		return err
	})
	if err != nil {
		return u.report, err
	}
	defer closeFD(u.base.fd)
	u.in = &io.LimitedReader{R: r, N: maxHeaders}
	err = u.run(tar.NewReader(u.in))
	return u.report, pathError("untar", dir, errors.Join(err, u.finish()))
}

// unpacker unpacks one archive. The caller's code runs between its steps.
type unpacker struct {
	fs      *FS
	path    string
	base    base
	in      *io.LimitedReader // so that an endless series of headers without entries ends
	bytes   int64
	entries int
	report  UntarReport
	folders map[string]folderAttrs
}

// maxHeaders bounds the headers of one entry, and the global headers before it, in bytes.
// Package tar accepts at most 1 MiB each of attributes, name, link and map of holes.
const maxHeaders = 5 << 20

// folderAttrs are the attributes of a folder that are set last: permissions could deny
// further writes, which would also change the time.
type folderAttrs struct {
	bits     uint32
	modified time.Time
}

func (u *unpacker) run(in *tar.Reader) error {
	for {
		h, err := in.Next()
		switch {
		case err != nil && u.in.N <= 0:
			return &LimitError{"bytes of an entry's headers", maxHeaders}
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // a comment of git
			continue
		}
		if u.report.Entries == u.entries {
			return &LimitError{"entries", int64(u.entries)}
		}
		u.report.Entries++
		switch err := u.entry(h, in); err {
		case nil:
		case unix.ELOOP, unix.ENOTDIR, unix.EISDIR: // a link or a file instead of a folder, or the reverse
			return fmt.Errorf("entry %q: %w", h.Name, ErrEntryKind)
		default:
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
		u.in.N = maxHeaders
	}
}

func (u *unpacker) entry(h *tar.Header, in *tar.Reader) error {
	path, err := entryPath(h.Name)
	switch {
	case err != nil:
		return err
	case path == "/" && h.Typeflag == tar.TypeDir:
		return nil // the target folder itself, which does not change
	case path == "/":
		return ErrEntryName
	case h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse:
		return u.file(path, h, in)
	}
	return u.step(func() error {
		switch h.Typeflag {
		case tar.TypeDir:
			if err := mkdirAll(u.base, path, folderMode); err != nil {
				return err
			}
			u.folders[path] = folderAttrs{uint32(h.Mode) & 0o777, h.ModTime}
			return nil
		case tar.TypeSymlink:
			return u.symlink(path, h)
		case tar.TypeLink:
			return u.hardLink(path, h.Linkname)
		}
		return ErrEntryType
	})
}

func (u *unpacker) step(do func() error) error {
	return unwrapped(u.fs.step("untar", u.path, func(base) error { return do() }))
}

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
			return fmt.Errorf("entry %q: %w", path[1:], err)
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
		old, err := statAt(p.dir, p.name)
		if err == nil && old.Ino == n.stat.Ino && old.Dev_major == n.stat.Dev_major && old.Dev_minor == n.stat.Dev_minor {
			return nil // already the same file: removing the old name could delete it
		}
		if err := removeOld(p); err != nil {
			return err
		}
		// By descriptor, because the guest may have reused the name.
		return unix.Linkat(unix.AT_FDCWD, n.link(), p.dir, p.name, unix.AT_SYMLINK_FOLLOW)
	})
}

func (u *unpacker) file(path string, h *tar.Header, in *tar.Reader) error {
	if h.Size > u.bytes-u.report.Bytes {
		return &LimitError{"bytes", u.bytes}
	}
	u.in.N += h.Size
	var d *tempFile
	if err := u.step(func() error {
		p, err := u.place(path)
		if err == nil {
			d, err = newTempFile(p, uint32(h.Mode)&0o777)
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
