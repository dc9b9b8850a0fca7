package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// Open opens the image that source names: a file or folder of the host if that path
// exists, and otherwise an image in a registry. A source that starts with "docker://" is
// always an image in a registry.
func Open(ctx context.Context, source string, o Options) (*Image, error) {
	want := v1.Platform{OS: "linux", Architecture: goruntime.GOARCH}
	if strings.HasPrefix(source, registryScheme) {
		return openRemote(ctx, source, o, want)
	}
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(source, "/") && !strings.HasPrefix(source, "."):
		return openRemote(ctx, source, o, want)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", ErrNoImage, err)
	case err != nil:
		return nil, err
	case info.IsDir():
		return openFolder(ctx, source, want)
	case info.Mode().IsRegular():
		return openArchive(ctx, source, o, want)
	}
	return nil, fmt.Errorf("%w: %s is neither a file nor a folder", ErrNoImage, source)
}

// opener opens a part of an image, which is a file, by path. The error for a missing part
// is fs.ErrNotExist.
type opener func(name string) (*io.SectionReader, error)

// Files that identify the form of a folder or an archive.
const (
	layoutFile  = "oci-layout"
	indexFile   = "index.json"
	dockerIndex = "manifest.json"
)

func has(open opener, names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool {
		_, err := open(n)
		return err != nil
	})
}

func openFolder(ctx context.Context, dir string, want v1.Platform) (*Image, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root}
	i := &Image{Kind: "folder", Folder: dir}
	if has(f.open, layoutFile, indexFile) {
		if i, err = openLayout(ctx, f.open, want); err != nil {
			f.close()
			return nil, err
		}
	}
	i.close = f.close
	return i, nil
}

// folder is the folder of a layout. No link leads out of it.
type folder struct {
	root   *os.Root
	opened []*os.File
}

func (d *folder) open(name string) (*io.SectionReader, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	d.opened = append(d.opened, f)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NewSectionReader(f, 0, info.Size()), nil
}

func (d *folder) close() {
	for _, f := range d.opened {
		f.Close()
	}
	_ = d.root.Close()
}

// layout is an OCI layout. Its blobs are files by digest.
type layout struct {
	open  opener
	index []byte
}

func openLayout(ctx context.Context, open opener, want v1.Platform) (*Image, error) {
	text, err := readPart(open, indexFile)
	if err != nil {
		return nil, err
	}
	i, err := assemble(ctx, layout{open, text}, want)
	if err != nil {
		return nil, err
	}
	i.Kind = "oci-layout"
	return i, nil
}

func (l layout) Image() (text []byte, digest v1.Hash) { return l.index, v1.Hash{} }

func (l layout) Manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	return readBlob(ctx, l, d)
}

func (l layout) Blob(_ context.Context, digest v1.Hash) (io.ReadCloser, error) {
	r, err := l.open(blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: blob %s is missing", ErrMalformed, digest)
	}
	return io.NopCloser(r), err
}

// Close does nothing: the files belong to the opener.
func (l layout) Close() {}

// readPart reads a document of at most MaxDocument bytes.
func readPart(open opener, name string) ([]byte, error) {
	r, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if r.Size() > MaxDocument {
		return nil, errDocument
	}
	return io.ReadAll(r)
}

// openDocker opens an archive of `docker save`.
func openDocker(open opener, want v1.Platform) (*Image, error) {
	text, err := readPart(open, dockerIndex)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Config string
		Layers []string
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&list); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, dockerIndex, err)
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%w: an archive of %d images: save only one", ErrMalformed, len(list))
	}
	if text, err = readPart(open, list[0].Config); err != nil {
		return nil, err
	}
	i := &Image{Kind: "docker-archive"}
	ids, err := i.configure(text, want, len(list[0].Layers))
	if err != nil {
		return nil, err
	}
	for n, name := range list[0].Layers {
		r, err := open(name)
		if err != nil {
			return nil, fmt.Errorf("%w: layer: %w", ErrMalformed, err)
		}
		i.Layers = append(i.Layers, Layer{DiffID: ids[n], Size: r.Size(), Open: inFile(r)})
	}
	return i, nil
}
