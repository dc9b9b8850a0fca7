package rootfs

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// bounds are the most that an archive may hold, whether unpacked or skipped.
type bounds struct {
	entries int
	bytes   int64
}

// packageBounds leaves room: Node's package has 6,000 entries and 190 MB.
var packageBounds = bounds{entries: 50_000, bytes: 1 << 30}

// errArchive is what an archive is refused for.
var errArchive = errors.New("archive refused")

// unpacker writes files of a package's tarball into a tree.
type unpacker struct {
	tree   *tree
	bounds bounds

	// place returns where the package's file name goes, "" for nowhere.
	place func(name string) string
}

// unpack reads all of a gzipped tar of npm's. Its hash must have been checked: what is
// refused here is what a package has no use for, as a second line of defence.
func (u *unpacker) unpack(ctx context.Context, r io.Reader) error {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	return u.bounds.each(ctx, plain, u.entry)
}

// each calls do for each entry of a tar.
func (b bounds) each(ctx context.Context, r io.Reader, do func(*tar.Header, io.Reader) error) error {
	// Headers and padding count too, which keeps even a flood of empty entries small.
	archive := tar.NewReader(&boundedReader{r, b.bytes})
	for n := 0; ; n++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n >= b.entries {
			return fmt.Errorf("%w: more than %d entries", errArchive, b.entries)
		}
		if err := do(h, archive); err != nil {
			return err
		}
	}
}

// entry unpacks one entry, or refuses it.
func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeXGlobalHeader, tar.TypeDir:
		if h.Typeflag == tar.TypeDir {
			_, err := inPackage(h)
			return err // folders come into being with their files
		}
		return nil
	case tar.TypeReg:
	default: // npm packs no links, and devices are no package's business
		return fmt.Errorf("%w: %q is of type %q", errArchive, h.Name, h.Typeflag)
	}
	if h.Mode&0o7000 != 0 {
		return fmt.Errorf("%w: %q has mode %o", errArchive, h.Name, h.Mode)
	}
	name, err := inPackage(h)
	if err != nil {
		return err
	}
	p := u.place(name)
	if p == "" {
		return nil
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	return u.tree.file(p, mode, content)
}

// inPackage returns the path of an entry below the archive's single top folder,
// which is "package" by custom only.
func inPackage(h *tar.Header) (string, error) {
	name := strings.TrimSuffix(h.Name, "/")
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\x00\\") {
		return "", fmt.Errorf("%w: path %q", errArchive, h.Name)
	}
	_, name, below := strings.Cut(name, "/")
	if !below && h.Typeflag != tar.TypeDir {
		return "", fmt.Errorf("%w: path %q", errArchive, h.Name)
	}
	return name, nil
}

// boundedReader fails when there is more than left to read.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it holds too many bytes", errArchive)
	}
	return n, err
}
