package rootfs

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

const (
	defaultRegistry = "https://registry.npmjs.org"
	maxMetadata     = 64 << 20 // bytes of a package's description
)

// abbreviated is the media type of a description with versions and little else.
const abbreviated = "application/vnd.npm.install-v1+json"

// configuredRegistry finds the registry as npm does: see NPMRegistries. It does not read credentials from an npmrc.
func configuredRegistry() (*url.URL, error) {
	all, err := NPMRegistries("")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimRight(all["registry"].URL, "/"))
	if err != nil {
		return nil, fmt.Errorf("npm registry: %w", err)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("npm registry %q: not an http or https address", u.Redacted())
	}
	return u, nil
}

// release is the registry's description of one version of a package.
type release struct {
	Version string `json:"version"`
	Dist    struct {
		Integrity string `json:"integrity"`
	} `json:"dist"`
}

// Resolve returns the package for a version, or the newest one for the first numbers of a
// version. A pinned integrity takes precedence over the registry's.
func (c *npmClient) Resolve(ctx context.Context, name, version string) (npmPackage, error) {
	if p, err := c.in.pins.Find(name, version); err == nil {
		return p, nil
	}
	r, err := c.release(ctx, name, version)
	if err != nil {
		return npmPackage{}, err
	}
	return newNPMPackage(name, r.Version, cmp.Or(c.in.pins[name+"@"+r.Version], r.Dist.Integrity))
}

// release asks the registry for the newest release whose version is version or starts with it.
func (c *npmClient) release(ctx context.Context, name, version string) (release, error) {
	var all struct {
		Versions map[string]release `json:"versions"`
	}
	err := c.get(ctx, name, abbreviated+", application/json", func(body io.Reader, _ int64) error {
		text, err := io.ReadAll(io.LimitReader(body, maxMetadata+1))
		if err != nil {
			return err
		}
		if len(text) > maxMetadata {
			return fmt.Errorf("description of more than %d bytes", maxMetadata)
		}
		return json.Unmarshal(text, &all)
	})
	if err != nil {
		return release{}, err
	}
	var newest release
	for v, r := range all.Versions {
		if v == r.Version && npmVersion().MatchString(v) && strings.HasPrefix(v+".", version+".") &&
			(newest.Version == "" || semver.Compare("v"+v, "v"+newest.Version) > 0) {
			newest = r
		}
	}
	if newest.Version == "" {
		return release{}, fmt.Errorf("%s: the registry lacks version %s", name, version)
	}
	return newest, nil
}

// maxTarball bounds a package's tarball in bytes. Node's has 50 MiB.
const maxTarball = 512 << 20

// Tarball opens the package's tarball after checking its hash. It keeps tarballs in the
// folder keep, by hash. It downloads missing and damaged tarballs to the folder temp, on the
// same file system, and then moves them to keep.
func (c *npmClient) Tarball(ctx context.Context, p npmPackage, keep, temp string, r *download.Reporter) (*os.File, error) {
	kept := filepath.Join(keep, p.Integrity)
	f, err := download.Open(kept, sha512.New(), p.Integrity)
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, download.ErrIntegrity) {
		return f, err
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
func (c *npmClient) download(ctx context.Context, p npmPackage, f *os.File, r *download.Reporter) error {
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
		r.Fetch(p.String(), size)
		n, err := io.Copy(f, io.LimitReader(body, maxTarball+1))
		if err == nil && n > maxTarball {
			err = fmt.Errorf("more than %d bytes", maxTarball)
		}
		return err
	})
}

// unpackPackage unpacks a package's gzipped tarball into the tree. place returns the path for a
// file of the package, or "" to leave it out. The hash of the tarball must have been
// checked before. As a second line of defense, unpackPackage refuses entries that no package
// needs.
func unpackPackage(ctx context.Context, r io.Reader, t *layer.Tree, place func(name string) string) error {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	return t.ApplyPackage(ctx, plain, func(h *tar.Header, _ *bufio.Reader) (string, error) {
		// The name of the single top folder is "package" only by convention.
		name := strings.TrimSuffix(h.Name, "/")
		_, below, isBelow := strings.Cut(name, "/")
		switch {
		case !fs.ValidPath(name) || strings.ContainsRune(name, '\\'):
			return "", fmt.Errorf("%w: path %q", layer.ErrRefused, h.Name)
		case h.Typeflag == tar.TypeDir: // made with its files
			return "", nil
		case h.Typeflag != tar.TypeReg || h.Mode&0o7000 != 0 || !isBelow: // npm packs neither links nor devices
			return "", fmt.Errorf("%w: %q is of type %q, with mode %o", layer.ErrRefused, h.Name, h.Typeflag, h.Mode)
		}
		return place(below), nil
	})
}
