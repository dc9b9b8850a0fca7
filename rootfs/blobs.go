package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gaol/rootfs/oci"
)

// The blobs of a store are layers as registries have them, by digest: an image that
// shares layers with another in the store fetches only the others. A blob comes there
// with an image that names it, and goes with the last one.

// blobName is a file name, and what image.json calls the blob.
func blobName(l *oci.Layer) string { return l.Digest.Algorithm + "-" + l.Digest.Hex }

// blob opens a layer's blob, whose digest has been checked.
func (m *importer) blob(ctx context.Context, l *oci.Layer, label string) (io.ReadCloser, error) {
	if l.Local != nil {
		if err := l.Check(ctx, l.Local); err != nil {
			return nil, err
		}
		_, err := l.Local.Seek(0, io.SeekStart)
		return io.NopCloser(l.Local), err
	}
	name := blobName(l)
	for _, place := range []string{m.scratch.path(name), filepath.Join(m.store.blobs(), name)} {
		f, err := os.Open(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(l.Check(ctx, f), rewind(f))
		}
		if err == nil {
			m.keep(name)
			return f, nil
		}
		_ = f.Close()
		if !errors.Is(err, oci.ErrDigest) && !errors.Is(err, oci.ErrTruncated) {
			return nil, err
		}
	}
	return m.receive(ctx, l, label)
}

func (m *importer) keep(name string) {
	if !slices.Contains(m.blobs, name) {
		m.blobs = append(m.blobs, name)
	}
}

// receive gets the blob from its registry, into the import's own folder for now.
func (m *importer) receive(ctx context.Context, l *oci.Layer, label string) (io.ReadCloser, error) {
	f, err := os.Create(m.scratch.path(blobName(l)))
	if err != nil {
		return nil, err
	}
	bar := m.report.bar(fmt.Sprintf("fetch %s %.19s", label, l.Digest), l.Size)
	err = l.Receive(ctx, io.MultiWriter(f, bar))
	bar.Close()
	if err = errors.Join(err, rewind(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m.keep(blobName(l))
	return f, nil
}

// storeBlobs makes the fetched blobs the store's.
// Precondition: the store's lock is held, and an image there names them.
func (m *importer) storeBlobs() error {
	if len(m.blobs) == 0 {
		return nil
	}
	if err := os.MkdirAll(m.store.blobs(), 0o755); err != nil {
		return err
	}
	for _, name := range m.blobs {
		err := os.Rename(m.scratch.path(name), filepath.Join(m.store.blobs(), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was there before
			return err
		}
	}
	return nil
}

// discardBlobs moves the blobs that no image names into trash.
// Precondition: the store's lock is held.
func (s *Store) discardBlobs(trash *scratch) error {
	blobs, err := os.ReadDir(s.blobs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing has come from a registry yet
	}
	if err != nil || len(blobs) == 0 {
		return err
	}
	images, err := s.List()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, i := range images {
		if i.Imported != nil {
			for _, b := range i.Imported.Blobs {
				named[b] = true
			}
		}
	}
	for _, b := range blobs {
		if !named[b.Name()] {
			if err := os.Rename(filepath.Join(s.blobs(), b.Name()), trash.path(b.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
