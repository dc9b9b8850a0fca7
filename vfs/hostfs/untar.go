package hostfs

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// UntarOptions bound what is unpacked. A zero field takes its default.
type UntarOptions struct {
	Bytes   int64 // of files' content, holes included; default 1 GiB
	Entries int   // default Limits.Entries
}

// UntarReport tells what was unpacked.
type UntarReport struct {
	Entries int
	Bytes   int64 // of files' content
}

// EntryError says which entry of an archive was refused.
type EntryError struct {
	Name string // as it is in the archive
	Err  error
}

// Error reads `entry "name": cause`.
func (e *EntryError) Error() string { return fmt.Sprintf("entry %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// Why entries are refused.
var (
	ErrEntryName = errors.New("not a relative, clean path")
	ErrEntryType = errors.New("not a file, folder or link")
	ErrEntryKind = errors.New("a folder is to replace what is none, or the other way round")
)

// Untar unpacks an archive into a folder, which must exist. Files, links and folders
// belong to the guest, whatever the archive says, and have its times; set-id bits are left out. A file or
// link takes the place of another one of its name; a folder keeps what is in it.
//
// The names must be relative and clean, apart from "./" before and "/" behind them. No
// link is followed on the way to an entry: what is below one is refused. A symbolic
// link's own text may be anything. A hard link must be to a file in the folder. Devices,
// FIFOs and other kinds of entries are refused.
//
// It ends at the first entry that it refuses, a *EntryError, or at a bound, a
// *LimitError, and reads no further; what was unpacked before stays. Only the file at which it ended does not.
func (f *FS) Untar(r io.Reader, dir string, o UntarOptions) (UntarReport, error) {
	u := &unpacker{
		fs: f, path: dir, folders: map[string]ending{},
		bytes: cmp.Or(o.Bytes, defaultTarBytes), entries: cmp.Or(o.Entries, f.limits.Entries),
	}
	if u.bytes < 0 || u.entries < 0 {
		return u.report, &fs.PathError{Op: "untar", Path: dir, Err: fs.ErrInvalid}
	}
	err := f.at("untar", dir, func(root int) error {
		n, err := lookup(root, dir, false)
		if err != nil {
			return err
		}
		if !n.isFolder() {
			n.close()
			return unix.ENOTDIR
		}
		u.base = n.fd
		return nil
	})
	if err != nil {
		return u.report, err
	}
	defer closeFD(u.base)
	u.in = &entryReader{r, maxHeaders}
	err = u.all(tar.NewReader(u.in))
	return u.report, pathError("untar", dir, errors.Join(err, u.finish()))
}

// unpacker unpacks one archive. Between its steps, code of the caller runs.
type unpacker struct {
	fs      *FS
	path    string
	base    int // the folder
	in      *entryReader
	bytes   int64
	entries int
	report  UntarReport
	folders map[string]ending
}

// maxHeaders bounds the headers of one entry and the global ones before it, in bytes. Package
// tar takes at most 1 MiB each of attributes, name, link and map of holes.
const maxHeaders = 5 << 20

// entryReader reads an archive. It fails once it has read more than left bytes, so that
// headers without entries, however many, end.
type entryReader struct {
	r    io.Reader
	left int64
}

func (e *entryReader) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, &LimitError{"bytes of an entry's headers", maxHeaders}
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	return n, err
}

// ending is what a folder gets in the end: permissions may forbid to unpack more, and that
// would change the time.
type ending struct {
	bits     uint32
	modified time.Time
}

func (u *unpacker) all(in *tar.Reader) error {
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // git's comment
			continue
		}
		if u.report.Entries == u.entries {
			return &LimitError{"entries", int64(u.entries)}
		}
		u.report.Entries++
		if err := u.one(h, in); err != nil {
			return &EntryError{h.Name, err}
		}
		u.in.left = maxHeaders
	}
}

func (u *unpacker) one(h *tar.Header, in *tar.Reader) error {
	name, err := entryName(h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		if h.Typeflag != tar.TypeDir {
			return ErrEntryName
		}
		return nil // the folder itself, which stays as it is
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.step(func() error { return u.folder(name, ending{uint32(h.Mode) & 0o777, h.ModTime}) })
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(name, h, in)
	case tar.TypeSymlink:
		return u.step(func() error { return u.symlink(name, h) })
	case tar.TypeLink:
		return u.step(func() error { return u.hardLink(name, h.Linkname) })
	}
	return ErrEntryType
}

func (u *unpacker) step(do func() error) error {
	return unwrapped(u.fs.step("untar", u.path, func(int) error { return do() }))
}
