package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
	"gaol/rootfs/tree"
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

// Write writes an image of one layer, for Linux and Go's name of a processor, to w as a tar archive of an OCI
// layout. pack writes the layer's files as a tar archive. The compressed layer is stored in temp, an empty file,
// because its digest precedes it in w. Equal layers and configs give equal archives.
func Write(w io.Writer, arch string, c Config, temp *os.File, pack func(io.Writer) error) error {
	layer, diffID, err := compress(temp, pack)
	if err != nil {
		return err
	}
	out := &layoutWriter{tar: tar.NewWriter(w)}
	out.document(layoutFile, "", map[string]string{"imageLayoutVersion": "1.0.0"})
	config := out.document("", types.OCIConfigJSON, v1.ConfigFile{
		Created: v1.Time{Time: tree.Epoch}, OS: "linux", Architecture: arch,
		Config: v1.Config{Env: c.Env, WorkingDir: c.WorkingDir, User: c.User, Entrypoint: c.Entrypoint, Cmd: c.Cmd},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diffID}},
	})
	manifest := out.document("", types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{layer},
	})
	manifest.Platform = &v1.Platform{OS: "linux", Architecture: arch}
	out.document(indexFile, "", v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{manifest},
	})
	out.file(blobPath(layer.Digest), layer.Size, temp)
	if out.err != nil {
		return out.err
	}
	return out.tar.Close()
}

// compress writes a layer's blob to temp, and seeks to its start.
func compress(temp *os.File, pack func(io.Writer) error) (layer v1.Descriptor, diffID v1.Hash, err error) {
	blob, plain := sha256.New(), sha256.New()
	file := bufio.NewWriterSize(io.MultiWriter(temp, blob), 256<<10)
	z := gzip.NewWriter(file) // takes half as long as Go's own, for 3 % more bytes
	if err = pack(io.MultiWriter(z, plain)); err != nil {
		return layer, diffID, err
	}
	err = errors.Join(z.Close(), file.Flush())
	layer.MediaType, layer.Digest = types.OCILayer, hashOf(blob)
	if err == nil {
		layer.Size, err = temp.Seek(0, io.SeekCurrent)
	}
	return layer, hashOf(plain), errors.Join(err, download.Rewind(temp))
}

func hashOf(sum hash.Hash) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hexOf(sum)} }

// blobPath returns the path of a blob in a layout.
func blobPath(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// layoutWriter writes the files of a layout until the first error.
type layoutWriter struct {
	tar *tar.Writer
	err error
}

// document writes a document as JSON, as a blob if name is empty.
func (l *layoutWriter) document(name string, media types.MediaType, content any) v1.Descriptor {
	text, err := json.Marshal(content)
	l.err = errors.Join(l.err, err)
	sum := sha256.New()
	sum.Write(text)
	d := v1.Descriptor{MediaType: media, Size: int64(len(text)), Digest: hashOf(sum)}
	l.file(cmp.Or(name, blobPath(d.Digest)), d.Size, bytes.NewReader(text))
	return d
}

func (l *layoutWriter) file(name string, size int64, content io.Reader) {
	if l.err == nil {
		l.err = l.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: tree.Epoch})
	}
	if l.err == nil {
		_, l.err = io.Copy(l.tar, content)
	}
}
