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

// TarOptions configure Tar. A zero field means its default.
type TarOptions struct {
	Bytes   int64 // of files' content; default 1 GiB
	Entries int   // default Limits.Entries

	// Skip lists guest paths to leave out. A folder is left out with its content.
	Skip []string

	// Owned also packs files that the guest owns but has made unreadable for itself. It
	// could make them readable again.
	Owned bool

	// Left, if not nil, is called for each skipped file, of which the report has only the
	// first 1,000. If it returns an error, Tar stops.
	Left func(Skip) error
}

// TarReport describes the content of an archive, and the skipped entries.
type TarReport struct {
	Entries int
	Bytes   int64 // of files' content

	// Skipped lists the first 1,000 files that are missing or incomplete in the archive.
	Skipped    []Skip
	SkippedAll int // number of all such files
}

// Skip says why a file is missing or incomplete in an archive.
type Skip struct {
	Path string // the guest's
	Err  error
}

const mostSkips = 1000

// ErrChanged is the error for a file that became shorter while it was packed. The archive
// has zeros at its end.
var ErrChanged = errors.New("it changed while it was read")

const defaultTarBytes = 1 << 30

// Tar writes the content of a folder to w as an archive: files, folders and links, with
// names relative to the folder, permissions without set-id bits, modification times,
// and the owners that the guest sees. A file with several names is stored several times.
// Holes of sparse files are stored as zeros.
//
// The guest may change the tree meanwhile. The archive is valid nevertheless: it has as many
// bytes of a file as the file had when Tar opened it. The report lists files that could not
// be packed. It is valid even with an error. Errors of w are returned unchanged.
func (f *FS) Tar(w io.Writer, dir string, o TarOptions) (TarReport, error) {
	p := &packer{access: access{f, o.Owned}, out: tar.NewWriter(w), base: dir, options: o, limit: cmp.Or(o.Bytes, defaultTarBytes)}
	entries := cmp.Or(o.Entries, f.limits.Entries)
	if p.limit < 0 || entries < 0 {
		return p.report, &fs.PathError{Op: "tar", Path: dir, Err: fs.ErrInvalid}
	}
	if err := f.walk(p.access, "tar", dir, entries, p.add); err != nil {
		return p.report, err
	}
	return p.report, p.out.Close()
}

type packer struct {
	access
	out     *tar.Writer
	base    string
	options TarOptions
	limit   int64
	report  TarReport
}

// skip reports a file that is not packed.
func (p *packer) skip(path string, err error) error {
	s, r := Skip{path, err}, &p.report
	if r.SkippedAll++; len(r.Skipped) < mostSkips {
		r.Skipped = append(r.Skipped, s)
	}
	if p.options.Left == nil {
		return nil
	}
	return p.options.Left(s)
}

// add packs a file of the walk.
func (p *packer) add(v item) error {
	switch {
	case slices.Contains(p.options.Skip, v.path):
		if v.info.IsDir() {
			return fs.SkipDir
		}
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
		ModTime: v.info.modified.Truncate(time.Second), // fractions would need another header for each entry
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

// header writes the header of an entry. It skips files that an archive cannot represent;
// nothing is written then.
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

func (p *packer) link(h *tar.Header, v item) (err error) {
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

// lost handles a file that could not be opened. A removed file is ignored; a link that was
// replaced is skipped.
func (p *packer) lost(path string, err error) error {
	if e := unwrapped(err); errors.Is(e, p.fs.closedErr) {
		return err
	} else if e != unix.ENOENT {
		return p.skip(path, e)
	}
	return nil
}

func (p *packer) file(h *tar.Header, v item) error {
	file, size, err := p.open(v)
	if err != nil {
		return p.lost(v.path, err)
	}
	defer func() { _ = file.Close() }() // it is only read
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

// open opens a file of the walk, and returns its current size.
func (p *packer) open(v item) (file *File, size int64, err error) {
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
		if err := p.readAs(n, func() (err error) {
			fd, err = n.reopen(unix.O_RDONLY)
			return err
		}); err != nil {
			return err
		}
		size = int64(n.stat.Size)
		file = &File{fs: p.fs, path: v.path, file: os.NewFile(uintptr(fd), v.path)}
		p.fs.register(file)
		return nil
	})
	return file, size, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
