package oci

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// openArchive opens an archive of an image, or of a root file system.
func openArchive(ctx context.Context, file string, o Options, want v1.Platform) (i *Image, err error) {
	f, err := openTar(ctx, file, o)
	if err != nil {
		return nil, err
	}
	a, err := indexArchive(ctx, f)
	switch { // since Docker 25, docker save also writes a layout, with the same layers
	case err != nil:
	case has(a.open, dockerIndex):
		i, err = openDocker(a.open, want)
	case has(a.open, layoutFile, indexFile):
		i, err = openLayout(ctx, a.open, want)
	default:
		var size int64
		size, err = f.Seek(0, io.SeekEnd)
		i = &Image{Kind: "tar", Layers: []Layer{{Size: size, Open: inFile(io.NewSectionReader(f, 0, size))}}}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	i.close = func() { f.Close() }
	return i, nil
}

// openTar opens a tar archive. It decompresses a compressed one into a temporary file,
// because the parts of an archive are read in any order.
func openTar(ctx context.Context, file string, o Options) (*os.File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	plain, compressed, err := decompress(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !compressed {
		return f, nil
	}
	defer f.Close()
	defer plain.Close()
	out, err := o.Temp()
	if err != nil {
		return nil, err
	}
	if err := copyTar(ctx, out, plain, o.MaxTemp); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// copyTar copies a tar archive of at most most bytes. It parses the headers meanwhile, and
// fails at the header of an entry that exceeds the bound, before it reads the content.
func copyTar(ctx context.Context, w io.Writer, r io.Reader, most int64) error {
	out := bufio.NewWriterSize(w, 256<<10) // skipped content is read in small pieces
	name, limits := "", layer.Limits{Bytes: most, Entries: math.MaxInt64}
	err := layer.EachEntry(ctx, io.TeeReader(r, out), limits, func(h *tar.Header, _ io.Reader) error {
		name = h.Name
		return nil
	})
	switch {
	case errors.Is(err, layer.ErrTooLarge):
		return fmt.Errorf("archive: %.200q: %w", name, err)
	case err != nil:
		return tarError(err)
	}
	return out.Flush()
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

// indexArchive reads the headers of at most maxArchive entries. It ignores entries that
// cannot be parts of an image: the archive may contain a root file system.
func indexArchive(ctx context.Context, f *os.File) (*archive, error) {
	if err := download.Rewind(f); err != nil {
		return nil, err
	}
	a := &archive{f, map[string]span{}, map[string]string{}}
	t := tar.NewReader(f) // it reads only headers, and seeks over the rest
	for range maxArchive {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, tarError(err)
		}
		if len(h.Name) > maxPart || len(h.Linkname) > maxPart {
			continue
		}
		name := strings.Clone(path.Clean(h.Name)) // Clone, because the name may be part of a header of 1 MiB
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			a.files[name] = span{at, h.Size}
		case tar.TypeSymlink: // old versions of docker save share layers by links
			a.links[name] = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			a.links[name] = strings.Clone(path.Clean(h.Linkname))
		}
	}
	return a, nil
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
