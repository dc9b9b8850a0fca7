package npm

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"gaol/rootfs/download"
)

// maxTarball bounds a package's tarball in bytes. Node's has 50 MiB.
const maxTarball = 512 << 20

// Tarball opens the package's tarball after checking its hash. It keeps tarballs in the
// folder keep, by hash, and downloads one that is missing or damaged there by way of a
// file in the folder temp, on the same file system.
func (c *Client) Tarball(ctx context.Context, p Package, keep, temp string, r *download.Reporter) (*os.File, error) {
	kept := filepath.Join(keep, p.Integrity)
	f, err := os.Open(kept)
	if err == nil {
		if err = download.Verify(f, sha512.New(), p.Integrity); err == nil {
			return f, nil
		}
		f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, download.ErrIntegrity) {
		return nil, err
	}
	f, err = os.Create(filepath.Join(temp, p.Integrity))
	if err != nil {
		return nil, err
	}
	if err = c.download(ctx, p, f, r); err == nil {
		err = download.Verify(f, sha512.New(), p.Integrity)
	}
	if err == nil {
		err = os.Rename(f.Name(), kept)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p, err), f.Close())
	}
	return f, nil
}

// download writes the package's tarball to f. It does not check the hash.
func (c *Client) download(ctx context.Context, p Package, f *os.File, r *download.Reporter) error {
	// This path is the convention of the protocol. The address in a description could lead
	// anywhere.
	address := fmt.Sprintf("%s/-/%s-%s.tgz", p.Name, path.Base(p.Name), p.Version) // a scope is part of the folder only
	return c.get(ctx, address, "", func(body io.Reader, size int64) error {
		if size > maxTarball {
			return fmt.Errorf("%d bytes are too many", size)
		}
		if err := errors.Join(f.Truncate(0), download.Rewind(f)); err != nil {
			return err
		}
		bar := r.Bar("fetch "+p.String(), size)
		defer bar.Close()
		n, err := io.Copy(io.MultiWriter(f, bar), io.LimitReader(body, maxTarball+1))
		if err == nil && n > maxTarball {
			err = fmt.Errorf("more than %d bytes", maxTarball)
		}
		return err
	})
}
