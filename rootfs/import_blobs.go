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

	"gaol/rootfs/download"
	"gaol/rootfs/oci"
)

// The blobs of a store are the layers of imported images, as registries have them, by
// digest: an import downloads only the layers that no image in the store has. A blob is
// stored together with the first image that has it, and removed with the last one.

// blobName returns the file name of a blob, which image.json lists, too.
func blobName(l *oci.Layer) string { return l.Digest.Algorithm + "-" + l.Digest.Hex }

// openBlob opens a layer's blob after checking its digest.
func (m *importer) openBlob(ctx context.Context, l *oci.Layer, label string) (io.ReadCloser, error) {
	if m.source.Kind != "registry" {
		if l.Digest.Hex != "" {
			if err := l.Receive(ctx, io.Discard); err != nil {
				return nil, err
			}
		}
		return l.Open(ctx)
	}
	name := blobName(l)
	if !slices.Contains(m.blobs, name) {
		m.blobs = append(m.blobs, name)
	}
	// An image may have the same layer twice. The store's copy may be damaged.
	for _, place := range []string{m.temp.path(name), filepath.Join(m.store.blobs(), name)} {
		f, err := os.Open(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(l.Check(ctx, f), download.Rewind(f))
		}
		if err == nil {
			return f, nil
		}
		f.Close()
		if !errors.Is(err, oci.ErrDigest) && !errors.Is(err, oci.ErrTruncated) {
			return nil, err
		}
	}
	return m.downloadBlob(ctx, l, label)
}

// downloadBlob downloads a blob into the import's temporary folder.
func (m *importer) downloadBlob(ctx context.Context, l *oci.Layer, label string) (io.ReadCloser, error) {
	f, err := os.Create(m.temp.path(blobName(l)))
	if err != nil {
		return nil, err
	}
	bar := m.report.Bar(fmt.Sprintf("fetch %s %.19s", label, l.Digest), l.Size)
	err = l.Receive(ctx, io.MultiWriter(f, bar))
	bar.Close()
	if err = errors.Join(err, download.Rewind(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// storeBlobs moves the downloaded blobs into the store.
// Precondition: the store's lock is held, and an image in the store uses the blobs.
func (b *build) storeBlobs() error {
	if len(b.blobs) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.store.blobs(), 0o755); err != nil {
		return err
	}
	for _, name := range b.blobs {
		err := os.Rename(b.temp.path(name), filepath.Join(b.store.blobs(), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the store had it already
			return err
		}
	}
	return nil
}

// discardBlobs moves the blobs that no image has to trash.
// Precondition: the store's lock is held.
func (s *Store) discardBlobs(trash *tempDir) error {
	blobs, err := os.ReadDir(s.blobs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was imported from a registry yet
	}
	if err != nil || len(blobs) == 0 {
		return err
	}
	images, err := s.List()
	if err != nil {
		return err
	}
	var used []string
	for _, i := range images {
		if i.Imported != nil {
			used = append(used, i.Imported.Blobs...)
		}
	}
	for _, b := range blobs {
		if !slices.Contains(used, b.Name()) {
			if err := os.Rename(filepath.Join(s.blobs(), b.Name()), trash.path(b.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
