package rootfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/rootfs/layer"
	"gaol/rootfs/oci"
	"gaol/rootfs/tree"
)

// builtConfig is the config that an export gives an image that gaol built. Without PATH, gaol and other
// tools use their default.
var builtConfig = oci.Config{WorkingDir: "/workspace", Entrypoint: []string{"node"}}

// Export writes the image that ref names to w, as a tar archive of an OCI layout, which [Store.Import] and
// other tools read. Images with equal ids give equal archives, from the same version of gaol. The archive has
// one layer, which is compressed into a temporary file in the store first.
//
// All files belong to root and have the same modification time. The programs that start a jail are left out:
// other tools do not need them, and an import adds those of its own gaol. A killed export leaves files that the
// next write to the store removes.
func (s *Store) Export(ctx context.Context, ref string, w io.Writer) (err error) {
	i, err := s.Lookup(ref)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s: %w", i.ID, err)
		}
	}()
	lease, err := i.Hold()
	if err != nil {
		return err
	}
	defer func() { _ = lease.Close() }()
	temp, err := s.makeTemp(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	blob, err := os.Create(temp.path("layer"))
	if err != nil {
		return err
	}
	defer blob.Close()
	config := builtConfig
	if i.Imported != nil {
		config = i.Imported.Config
	}
	arch := map[string]string{"x64": "amd64", "arm64": "arm64"}[i.Arch]
	return oci.Write(w, arch, config, blob, func(w io.Writer) error { return i.pack(ctx, w) })
}

// pack writes the tree of the image, without gaol's own programs, as a tar archive. The entries are sorted by folder.
func (i *Image) pack(ctx context.Context, w io.Writer) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(i.Root(), func(file string, e fs.DirEntry, err error) error {
		if err = errors.Join(err, context.Cause(ctx)); err != nil || file == i.Root() {
			return err
		}
		name := file[len(i.Root()):]
		if name == path.Dir(enter.Path) {
			return fs.SkipDir
		}
		return packFile(ctx, out, file, name[1:], e)
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// packFile packs a file, folder or link. Images contain nothing else.
func packFile(ctx context.Context, out *tar.Writer, file, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: tree.Epoch}
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= unix.S_ISVTX
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
	case 0:
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	default:
		return fmt.Errorf("%s is not a file, folder or link: %s", file, info.Mode())
	}
	if err := out.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, layer.NewReader(ctx, f, math.MaxInt64)) // ends with ctx
	return err
}
