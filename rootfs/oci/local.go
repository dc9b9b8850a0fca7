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
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// Open opens the image that source names: a file or folder of the host if that path
// exists, and otherwise an image in a registry. A source that starts with "docker://" is
// always an image in a registry.
func Open(ctx context.Context, source string, o Options) (*Image, error) {
	want, err := parsePlatform(o.Platform)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(source, registryScheme) {
		return openRegistry(ctx, source, o, want)
	}
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(source, "/") && !strings.HasPrefix(source, "."):
		return openRegistry(ctx, source, o, want)
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

// parts opens the parts of an image, which are files, by path.
type parts interface {
	open(name string) (*io.SectionReader, error) // fs.ErrNotExist
}

// Files that identify the form of a folder or an archive.
const (
	layoutFile  = "oci-layout"
	indexFile   = "index.json"
	dockerIndex = "manifest.json"
)

func has(p parts, names ...string) bool {
	for _, n := range names {
		if _, err := p.open(n); err != nil {
			return false
		}
	}
	return true
}

func openFolder(ctx context.Context, dir string, want v1.Platform) (*Image, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root}
	if !has(f, layoutFile, indexFile) {
		return &Image{Kind: "folder", Folder: dir}, f.Close()
	}
	i, err := openLayout(ctx, f, want)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	i.closers = []io.Closer{f}
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

func (d *folder) Close() error {
	for _, f := range d.opened {
		f.Close()
	}
	return d.root.Close()
}

// layout is an OCI layout. Its blobs are files by digest.
type layout struct{ parts }

func openLayout(ctx context.Context, p parts, want v1.Platform) (*Image, error) {
	text, err := readPart(p, indexFile)
	if err != nil {
		return nil, err
	}
	i, err := assemble(ctx, layout{p}, text, v1.Hash{}, want)
	if err != nil {
		return nil, err
	}
	i.Kind = "oci-layout"
	return i, nil
}

func (l layout) blob(d v1.Descriptor) (*io.SectionReader, error) {
	r, err := l.open(path.Join("blobs", d.Digest.Algorithm, d.Digest.Hex))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: blob %s is missing", ErrMalformed, d.Digest)
	}
	return r, err
}

func (l layout) manifest(_ context.Context, d v1.Descriptor) ([]byte, error) {
	r, err := l.blob(d)
	if err != nil {
		return nil, err
	}
	text, err := readDocument(r)
	if err != nil {
		return nil, err
	}
	return text, checkDocument(text, d.Digest)
}

func (l layout) config(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	return l.manifest(ctx, d)
}

func (l layout) layer(d v1.Descriptor) (Layer, error) {
	r, err := l.blob(d)
	return Layer{Local: r}, err
}

func readPart(p parts, name string) ([]byte, error) {
	r, err := p.open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return readDocument(r)
}

// openDocker opens an archive of `docker save`.
func openDocker(p parts, want v1.Platform) (*Image, error) {
	text, err := readPart(p, dockerIndex)
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
	if text, err = readPart(p, list[0].Config); err != nil {
		return nil, err
	}
	i := &Image{Kind: "docker-archive"}
	ids, err := i.configure(text, want)
	if err != nil {
		return nil, err
	}
	if len(ids) != len(list[0].Layers) || len(ids) > maxLayers {
		return nil, fmt.Errorf("%w: %d layers, and %d in its config; the maximum is %d", ErrMalformed, len(list[0].Layers), len(ids), maxLayers)
	}
	for n, name := range list[0].Layers {
		r, err := p.open(name)
		if err != nil {
			return nil, fmt.Errorf("%w: layer: %w", ErrMalformed, err)
		}
		i.Layers = append(i.Layers, Layer{DiffID: ids[n], Size: r.Size(), Local: r})
	}
	return i, nil
}
