package npm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"gaol/rootfs/layer"
	"gaol/rootfs/tree"
)

// packageLimits leave room: Node's package has 6,000 entries and 190 MB.
var packageLimits = layer.Limits{Entries: 50_000, Bytes: 1 << 30}

var errArchive = errors.New("archive refused")

// Unpack unpacks a package's gzipped tarball into the tree. place returns the path for a
// file of the package, or "" to leave it out. The hash of the tarball must have been
// checked before. As a second line of defense, Unpack refuses entries that no package
// needs.
func Unpack(ctx context.Context, r io.Reader, t *tree.Tree, place func(name string) string) error {
	return unpack(ctx, r, t, place, packageLimits)
}

func unpack(ctx context.Context, r io.Reader, t *tree.Tree, place func(name string) string, l layer.Limits) error {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	return layer.EachEntry(ctx, plain, l, func(h *tar.Header, content io.Reader) error {
		name, err := checkEntry(h)
		if err != nil || name == "" {
			return err
		}
		p := place(name)
		if p == "" {
			return nil
		}
		return t.WriteFile(p, layer.FileMode(h.Mode), content)
	})
}

// checkEntry returns the name of a file below the archive's single top folder, whose name is
// "package" only by convention. The name is "" for entries that need no file: folders are
// made with their files.
func checkEntry(h *tar.Header) (string, error) {
	name := strings.TrimSuffix(h.Name, "/")
	_, below, isBelow := strings.Cut(name, "/")
	switch {
	case h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg: // npm packs neither links nor devices
		return "", fmt.Errorf("%w: %q is of type %q", errArchive, h.Name, h.Typeflag)
	case !fs.ValidPath(name) || strings.ContainsAny(name, "\x00\\"):
		return "", fmt.Errorf("%w: path %q", errArchive, h.Name)
	case h.Typeflag == tar.TypeDir:
		return "", nil
	case h.Mode&0o7000 != 0:
		return "", fmt.Errorf("%w: %q has mode %o", errArchive, h.Name, h.Mode)
	case !isBelow:
		return "", fmt.Errorf("%w: path %q", errArchive, h.Name)
	}
	return below, nil
}
