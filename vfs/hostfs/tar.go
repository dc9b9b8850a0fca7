package hostfs

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"io/fs"
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

	// Left, if not nil, is called for each file that is missing or incomplete in the archive. If
	// it returns an error, Tar stops.
	Left func(Skip) error
}

// TarReport counts the content of an archive.
type TarReport struct {
	Entries int
	Bytes   int64 // of files' content
	Skipped int   // files that are missing or incomplete, see TarOptions.Left
}

// Skip is a file that is missing or incomplete in an archive, and the reason.
type Skip struct {
	Path string // the guest's
	Err  error
}

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
// bytes of a file as the file had when Tar opened it. The report is valid even with an error.
// Errors of w are returned unchanged.
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

// add packs a file of the walk.
func (p *packer) add(v item) error {
	switch {
	case slices.Contains(p.options.Skip, v.path):
		if v.info.IsDir() {
			return fs.SkipDir
		}
		return nil
	case v.err != nil && v.isTop():
		return v.err
	case v.err != nil:
		return p.skip(v.path, v.err)
	case v.isTop() && v.info.IsDir():
		return nil
	case v.isTop():
		return &fs.PathError{Op: "tar", Path: v.path, Err: unix.ENOTDIR}
	}
	h := &tar.Header{
		Name: v.path[len(join(p.base, "")):], Mode: int64(v.info.mode.Perm()), Uid: v.info.owner, Gid: v.info.group,
		ModTime: v.info.modified.Truncate(time.Second), // fractions would need another header for each entry
	}
	var file *file
	var err error
	switch v.info.Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
		h.Name += "/"
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		err = p.step("tar", v.path, func() (err error) {
			h.Linkname, err = readLink(v.dir, v.name)
			return err
		})
	case 0:
		h.Typeflag = tar.TypeReg
		if file, h.Size, err = p.open(v); err == nil {
			defer func() { _ = file.Close() }() // it is only read
		}
	default:
		err = ErrSpecial
	}
	if err != nil {
		return p.skip(v.path, err)
	}
	return p.write(h, v.path, file)
}

// skip reports a file that is not packed, or not completely. A file that was removed
// meanwhile is ignored.
func (p *packer) skip(path string, err error) error {
	cause := unwrapped(err)
	switch {
	case errors.Is(err, p.fs.closedErr):
		return err
	case cause == unix.ENOENT:
		return nil
	}
	p.report.Skipped++
	if p.options.Left == nil {
		return nil
	}
	return p.options.Left(Skip{path, cause})
}

// write writes an entry: its header and, for a regular file, its content.
func (p *packer) write(h *tar.Header, path string, content *file) error {
	if h.Size > p.limit-p.report.Bytes {
		return &fs.PathError{Op: "tar", Path: path, Err: &LimitError{"bytes", p.limit}}
	}
	err := p.out.WriteHeader(h)
	if errors.Is(err, tar.ErrHeader) { // an archive cannot represent it, and nothing was written
		return p.skip(path, err)
	}
	if err != nil {
		return err
	}
	p.report.Entries++
	p.report.Bytes += h.Size
	n, err := io.Copy(p.out, io.LimitReader(content, h.Size))
	if err != nil || n == h.Size {
		return err
	}
	if _, err = io.CopyN(p.out, zeros{}, h.Size-n); err != nil {
		return err
	}
	return p.skip(path, ErrChanged)
}

// open opens a file of the walk, and returns its current size.
func (p *packer) open(v item) (file *file, size int64, err error) {
	err = p.step("tar", v.path, func() error {
		return onChild(v.dir, v.name, func(n *node) error {
			if n.kind() != unix.S_IFREG {
				return ErrSpecial
			}
			return p.readAs(n, func() (err error) {
				file, err = p.fs.openNode(n, v.path)
				size = int64(n.stat.Size)
				return err
			})
		})
	})
	return file, size, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
