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

	"gaol/rootfs/layer"
)

func openArchive(ctx context.Context, file string, o Options, want v1.Platform) (_ *Image, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	var start [4]byte
	if _, err = f.ReadAt(start[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	if isCompressed(start[:]) {
		plain, err := expand(ctx, f, o)
		if err != nil {
			return nil, err
		}
		f.Close()
		f = plain
	}
	a, err := indexArchive(ctx, f)
	if err != nil {
		return nil, err
	}
	var i *Image
	switch {
	case has(a, dockerIndex):
		i, err = openDocker(a, want)
	case has(a, layoutFile, indexFile):
		i, err = openLayout(ctx, a, want)
	default:
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, err
		}
		i = &Image{Kind: "tar", Layers: []Layer{{Size: size, Local: io.NewSectionReader(f, 0, size)}}}
	}
	if err != nil {
		return nil, err
	}
	i.closers = []io.Closer{f}
	return i, nil
}

// expand decompresses an archive into a file, for its parts are read in any order.
func expand(ctx context.Context, f *os.File, o Options) (*os.File, error) {
	plain, err := decompress(f)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	out, err := o.Temp()
	if err != nil {
		return nil, err
	}
	if err = copyTar(ctx, out, plain, o.MaxTemp); err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// copyTar copies a tar archive of at most most bytes. It reads the headers on the way, and
// fails at an entry that does not fit before it reads that entry's content.
func copyTar(ctx context.Context, w io.Writer, r io.Reader, most int64) error {
	out := bufio.NewWriterSize(w, 256<<10) // what is skipped is read in small pieces
	in := layer.NewReader(ctx, io.TeeReader(r, out), most)
	name, archive := "", tar.NewReader(in)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			if _, err = io.Copy(io.Discard, in); err == nil { // a checksum comes last
				return out.Flush()
			}
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%w: %w", ErrTruncated, err)
		case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong):
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		case errors.Is(err, layer.ErrTooLarge):
			return fmt.Errorf("archive: %.200q: %w", name, err)
		case err != nil:
			return err
		}
		name = h.Name
	}
}

// endedReader fails once ctx has ended.
type endedReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *endedReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// archive is a tar archive with the parts of an image: where each of its files is.
type archive struct {
	file  *os.File
	files map[string]span
	links map[string]string
}

type span struct{ at, size int64 }

// maxPart is the longest path of an image's part, in bytes, for which 80 or so would do.
const maxPart = 255

// indexArchive reads the headers. What does not look like an image's part may be of a
// root file system, and is then of no interest here: the index has an end.
func indexArchive(ctx context.Context, f *os.File) (*archive, error) {
	a := &archive{f, map[string]span{}, map[string]string{}}
	t := tar.NewReader(f) // which reads no further than it has to, and seeks
	for range maxArchive {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: %w", ErrTruncated, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if len(h.Name) > maxPart || len(h.Linkname) > maxPart {
			continue
		}
		name := strings.Clone(path.Clean(h.Name)) // which may be part of a header of a megabyte
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			a.files[name] = span{at, h.Size}
		case tar.TypeSymlink: // by which old versions of docker save shared layers
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
