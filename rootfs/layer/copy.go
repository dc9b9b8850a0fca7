package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// Copy copies a host folder over the existing files. It copies neither other file systems
// mounted there nor the folder skip, if that is not nil. Links stay links.
func (t *Tree) Copy(ctx context.Context, dir string, skip fs.FileInfo) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	top, err := root.Stat(".")
	if err != nil {
		return err
	}
	c := copier{newApplier(t), root, deviceOf(top), skip}
	c.plain = true
	return c.all(ctx, ".")
}

type copier struct {
	*applier
	from   *os.Root
	device uint64
	skip   fs.FileInfo
}

func deviceOf(info fs.FileInfo) uint64 {
	return info.Sys().(*syscall.Stat_t).Dev
}

// all copies name and everything in it. The applier bounds the depth.
func (c copier) all(ctx context.Context, name string) error {
	info, err := c.from.Lstat(name)
	if err := errors.Join(err, context.Cause(ctx), c.budget.entry()); err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm())}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
		// Neither mounted file systems, such as /proc, nor the store that is being written.
		if err := c.entry(h, nil); err != nil || deviceOf(info) != c.device || c.skip != nil && os.SameFile(info, c.skip) {
			return err
		}
		return c.inside(ctx, name)
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = c.from.Readlink(name); err != nil {
			return err
		}
		return c.entry(h, nil)
	case 0:
		return c.file(ctx, h)
	}
	c.Dropped++
	return nil
}

func (c copier) inside(ctx context.Context, dir string) error {
	d, err := c.from.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.all(ctx, path.Join(dir, n)); err != nil {
			return err
		}
	}
	return nil
}

func (c copier) file(ctx context.Context, h *tar.Header) error {
	// O_NONBLOCK: the open must not wait if a pipe has replaced the file.
	f, err := c.from.OpenFile(h.Name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %q is no longer a file", ErrRefused, h.Name)
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	return c.entry(h, c.budget.reader(ctx, f))
}
