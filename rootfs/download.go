package rootfs

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxTarball is the most bytes a package's tarball may have. Node's has 50 MiB.
const maxTarball = 512 << 20

// tarball opens the package's tarball, whose hash has been checked. It comes
// from the store's downloads when it is there, unspoilt, and goes there if not.
func (b *build) tarball(ctx context.Context, p pkg) (*os.File, error) {
	kept := filepath.Join(b.store.downloads(), p.Integrity.String())
	f, err := os.Open(kept)
	if err == nil {
		if err = check(f, p.Integrity); err == nil {
			return f, nil
		}
		_ = f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrIntegrity) {
		return nil, err
	}
	f, err = os.Create(b.scratch.path(p.Integrity.String()))
	if err != nil {
		return nil, err
	}
	if err := b.download(ctx, p, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := errors.Join(os.Rename(f.Name(), kept), rewind(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// download writes the package's tarball to f. Without an error, it has been
// checked.
func (b *build) download(ctx context.Context, p pkg, f *os.File) error {
	// The path is the registry protocol's usual one. An address from the
	// registry's own description could lead anywhere.
	path := fmt.Sprintf("%s/-/%s-%s.tgz", p.Name, p.Name, p.Version)
	return b.fetch.get(ctx, request{path: path}, func(body io.Reader, size int64) error {
		if size > maxTarball {
			return fmt.Errorf("%s: %d bytes are too many", p, size)
		}
		if err := errors.Join(f.Truncate(0), rewind(f)); err != nil {
			return err
		}
		bar := b.report.bar("fetch "+p.String(), size)
		defer bar.Close()
		hash := sha512.New()
		n, err := io.Copy(io.MultiWriter(f, hash, bar), io.LimitReader(body, maxTarball+1))
		switch {
		case err != nil:
			return err
		case n > maxTarball:
			return fmt.Errorf("%s: more than %d bytes", p, maxTarball)
		case integrity(hash.Sum(nil)) != p.Integrity:
			return fmt.Errorf("%s: %w", p, ErrIntegrity)
		}
		return nil
	})
}

// check compares the content of f with its hash, and goes back to its start.
func check(f *os.File, want integrity) error {
	hash := sha512.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	if integrity(hash.Sum(nil)) != want {
		return ErrIntegrity
	}
	return rewind(f)
}

func rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}
