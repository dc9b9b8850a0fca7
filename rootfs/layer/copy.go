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
	c.applier.plain = true
	return c.all(ctx, ".")
}

// all copies name and everything in it. The applier bounds the depth.
func (c copier) all(ctx context.Context, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	enter, err := c.copy(ctx, name)
	if err != nil || !enter {
		return err
	}
	d, err := c.root.Open(name)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	d.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := c.all(ctx, path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

type copier struct {
	applier *applier
	root    *os.Root
	device  uint64
	skip    fs.FileInfo
}

func deviceOf(info fs.FileInfo) uint64 {
	return info.Sys().(*syscall.Stat_t).Dev
}

// copy copies one name. It reports whether that is a folder whose content must be copied.
func (c copier) copy(ctx context.Context, name string) (enter bool, err error) {
	info, err := c.root.Lstat(name)
	if err != nil {
		return false, err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm())}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
		// Neither mounted file systems, such as /proc, nor the store that is being written.
		enter = deviceOf(info) == c.device && (c.skip == nil || !os.SameFile(info, c.skip))
		return enter, c.applier.entry(h, nil)
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = c.root.Readlink(name); err != nil {
			return false, err
		}
		return false, c.applier.entry(h, nil)
	case 0:
		return false, c.file(ctx, h)
	}
	c.applier.Dropped++
	return false, nil
}

func (c copier) file(ctx context.Context, h *tar.Header) error {
	// O_NONBLOCK: the open must not wait if a pipe has replaced the file.
	f, err := c.root.OpenFile(h.Name, os.O_RDONLY|unix.O_NONBLOCK, 0)
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
	return c.applier.entry(h, c.applier.budget.reader(ctx, f))
}
