package hostfs

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// TarOptions bound what is packed. A zero field takes its default.
type TarOptions struct {
	Bytes   int64 // of files' content; default 1 GiB
	Entries int   // default Limits.Entries

	// Skip are the guest's paths of what is not to be in it, folders with all in them.
	Skip []string

	// Owned packs also what the guest owns and took its own right to read from, as the
	// host reads it: the guest could give itself that right.
	Owned bool

	// Left, if not nil, is asked about each thing as it is skipped, of which the report
	// has the first 1,000 only. An error from it ends the packing.
	Left func(Skip) error
}

// TarReport tells what is in an archive, and what is not.
type TarReport struct {
	Entries int
	Bytes   int64 // of files' content

	// Skipped are what is not in it, or not as it was found: the first 1,000 of them.
	Skipped    []Skip
	SkippedAll int // how many there are
}

// Skip says why something in a tree is not in its archive.
type Skip struct {
	Path string // the guest's
	Err  error
}

const mostSkips = 1000

func (r *TarReport) skip(path string, err error) {
	if r.SkippedAll++; len(r.Skipped) < mostSkips {
		r.Skipped = append(r.Skipped, Skip{path, err})
	}
}

// ErrChanged is why a file is in an archive with zeros at its end: it became shorter
// while it was packed.
var ErrChanged = errors.New("it changed while it was read")

const defaultTarBytes = 1 << 30

// Tar writes what is in a folder to w as an archive: files, folders and links, with
// names relative to the folder, permissions without set-id bits, modification times,
// and the owners that the guest sees. A file with several names is in it as many times.
// Sparse files are written out.
//
// The guest may change the tree meanwhile. The archive is valid all the same: of a file,
// it has as many bytes as the file had when its turn came. What can't be packed is told
// of in the report, which is valid also if there is an error. One from w comes as it is.
func (f *FS) Tar(w io.Writer, dir string, o TarOptions) (TarReport, error) {
	p := &packer{reader: reader{f, o.Owned}, out: tar.NewWriter(w), base: dir, leave: o.Skip, left: o.Left, limit: cmp.Or(o.Bytes, defaultTarBytes)}
	entries := cmp.Or(o.Entries, f.limits.Entries)
	if p.limit < 0 || entries < 0 {
		return p.report, &fs.PathError{Op: "tar", Path: dir, Err: fs.ErrInvalid}
	}
	if err := f.walk(p.reader, "tar", dir, entries, p.add); err != nil {
		return p.report, err
	}
	return p.report, p.out.Close()
}

type packer struct {
	reader
	out    *tar.Writer
	base   string
	leave  []string
	left   func(Skip) error
	limit  int64
	report TarReport
}

// skip tells of what is not packed.
func (p *packer) skip(path string, err error) error {
	p.report.skip(path, err)
	if p.left == nil {
		return nil
	}
	return p.left(Skip{path, err})
}

// add packs what the walk found.
func (p *packer) add(v found) error {
	switch {
	case slices.Contains(p.leave, v.path) && v.info.IsDir():
		return fs.SkipDir
	case slices.Contains(p.leave, v.path):
		return nil
	case v.err != nil && v.dir < 0:
		return v.err
	case v.err != nil:
		return p.skip(v.path, unwrapped(v.err))
	case v.dir < 0 && v.info.IsDir():
		return nil
	case v.dir < 0:
		return &fs.PathError{Op: "tar", Path: v.path, Err: unix.ENOTDIR}
	}
	h := &tar.Header{
		Name: v.path[len(join(p.base, "")):], Mode: int64(v.info.mode.Perm()), Uid: v.info.owner, Gid: v.info.group,
		ModTime: v.info.modified.Truncate(time.Second), // more takes a further header for each entry
	}
	switch v.info.Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
		h.Name += "/"
	case fs.ModeSymlink:
		return p.link(h, v)
	case 0:
		return p.file(h, v)
	default:
		return p.skip(v.path, ErrSpecial)
	}
	return p.header(h, v.path)
}

// header begins an entry. What archives can't hold is skipped: nothing is written then.
func (p *packer) header(h *tar.Header, path string) error {
	err := p.out.WriteHeader(h)
	if errors.Is(err, tar.ErrHeader) {
		return p.skip(path, err)
	}
	if err == nil {
		p.report.Entries++
	}
	return err
}

func (p *packer) link(h *tar.Header, v found) (err error) {
	h.Typeflag = tar.TypeSymlink
	err = p.step("tar", v.path, func() error {
		h.Linkname, err = readLink(v.dir, v.name)
		return err
	})
	if err != nil {
		return p.lost(v.path, err)
	}
	return p.header(h, v.path)
}

// lost deals with what could not be opened. What is gone, or is no link any more, was
// not there when it mattered.
func (p *packer) lost(path string, err error) error {
	if e := unwrapped(err); errors.Is(e, p.fs.gone) {
		return err
	} else if e != unix.ENOENT {
		return p.skip(path, e)
	}
	return nil
}

func (p *packer) file(h *tar.Header, v found) error {
	file, size, err := p.open(v)
	if err != nil {
		return p.lost(v.path, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if size > p.limit-p.report.Bytes {
		return &fs.PathError{Op: "tar", Path: v.path, Err: &LimitError{"bytes", p.limit}}
	}
	h.Typeflag, h.Size = tar.TypeReg, size
	before := p.report.Entries
	if err := p.header(h, v.path); err != nil || p.report.Entries == before {
		return err
	}
	p.report.Bytes += size
	n, err := io.Copy(p.out, io.LimitReader(file, size))
	if err != nil || n == size {
		return err
	}
	if _, err = io.CopyN(p.out, zeros{}, size-n); err != nil {
		return err
	}
	return p.skip(v.path, ErrChanged)
}

// open opens a file that the walk found, and tells its size by now.
func (p *packer) open(v found) (file *File, size int64, err error) {
	err = p.step("tar", v.path, func() error {
		n, err := child(v.dir, v.name)
		if err != nil {
			return err
		}
		defer n.close()
		if n.kind() != unix.S_IFREG {
			return ErrSpecial
		}
		fd := -1
		if err := p.as(n, func() (err error) {
			fd, err = n.reopen(unix.O_RDONLY)
			return err
		}); err != nil {
			return err
		}
		size = int64(n.stat.Size)
		file = &File{fs: p.fs, path: v.path, file: os.NewFile(uintptr(fd), v.path)}
		p.fs.keep(file)
		return nil
	})
	return file, size, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
