package oci

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// openArchive opens an archive of an image, or of a root file system.
func openArchive(ctx context.Context, file string, o Options, want v1.Platform) (i *Image, err error) {
	a, err := openTar(ctx, file, o)
	if err != nil {
		return nil, err
	}
	switch { // since Docker 25, docker save also writes a layout, with the same layers
	case has(a.open, dockerIndex):
		i, err = openDocker(a.open, want)
	case has(a.open, layoutFile, indexFile):
		i, err = openLayout(ctx, a.open, want)
	default:
		var size int64
		size, err = a.file.Seek(0, io.SeekEnd)
		i = &Image{Kind: "tar", Layers: []Layer{{Size: size, Open: inFile(io.NewSectionReader(a.file, 0, size))}}}
	}
	if err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	i.close = func() { a.file.Close() }
	return i, nil
}

// openTar opens a tar archive. It decompresses a compressed one into a temporary file of at most o.MaxTemp bytes,
// because the parts of an archive are read in any order. It fails at the header of an entry that exceeds this bound,
// before it reads the content.
func openTar(ctx context.Context, file string, o Options) (*archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	a := newArchive(f)
	plain, compressed, err := decompress(f)
	if err == nil && !compressed {
		if err = download.Rewind(f); err == nil {
			err = a.index(ctx, f, false)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !compressed {
		return a, nil
	}
	defer f.Close()
	defer plain.Close()
	if a.file, err = o.Temp(); err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(a.file, 256<<10) // skipped content is read in small pieces
	in := layer.NewReader(ctx, io.TeeReader(plain, out), o.MaxTemp)
	if err = a.index(ctx, in, true); err == nil {
		_, err = io.Copy(io.Discard, in) // the end of the archive
	}
	if err = errors.Join(tarError(err), out.Flush()); err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

// tarError wraps an error of an invalid archive in ErrTruncated or ErrMalformed.
func tarError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong):
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return err
}

// archive is the index of a tar archive that contains the parts of an image.
type archive struct {
	file  *os.File
	files map[string]span
	links map[string]string
}

// span is the position of a file's content in the archive.
type span struct{ at, size int64 }

// maxPart bounds the path of an image's part in bytes. Real ones have about 80.
const maxPart = 255

func newArchive(f *os.File) *archive { return &archive{f, map[string]span{}, map[string]string{}} }

// index records the first maxArchive entries of the uncompressed archive r. If all is set, it also reads the rest, whose
// errors it returns. It ignores entries that cannot be parts of an image: the archive may contain a root file
// system.
func (a *archive) index(ctx context.Context, r io.ReadSeeker, all bool) error {
	t := tar.NewReader(r) // it reads only headers, and seeks over the rest
	last := ""
	for n := 0; n < maxArchive || all; n++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, layer.ErrTooLarge):
			return fmt.Errorf("archive: %.200q: %w", last, err)
		case err != nil:
			return tarError(err)
		}
		last = h.Name
		if n >= maxArchive || len(h.Name) > maxPart || len(h.Linkname) > maxPart {
			continue
		}
		name := strings.Clone(path.Clean(h.Name)) // Clone, because the name may be part of a header of 1 MiB
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := r.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			a.files[name] = span{at, h.Size}
		case tar.TypeSymlink: // old versions of docker save share layers by links
			a.links[name] = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			a.links[name] = strings.Clone(path.Clean(h.Linkname))
		}
	}
	return nil
}

func (a *archive) open(name string) (*io.SectionReader, error) {
	name = path.Clean(name)
	if target, isLink := a.links[name]; isLink {
		name = target
	}
	s, found := a.files[name]
	if !found {
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NewSectionReader(a.file, s.at, s.size), nil
}
