package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// EnsureFolder makes the folder p and its missing parents. It replaces links and files on
// the path by folders.
func (t *Tree) EnsureFolder(p string) error {
	dir, name, err := split(p)
	if err != nil || name == "" {
		return err
	}
	if err := t.EnsureFolder(dir); err != nil {
		return err
	}
	return t.in(p, openFolder.ensure)
}

// Has reports whether p exists. It does not follow a link at p.
func (t *Tree) Has(p string) bool {
	d, err := t.existing(path.Dir(p))
	if err != nil {
		return false
	}
	defer d.close()
	_, err = d.Lstat(path.Base(p))
	return err == nil
}

// Symlink makes a symbolic link at p, which replaces any file, and the missing parents of p.
func (t *Tree) Symlink(p, target string) error {
	return t.in(p, func(d openFolder, name string) error { return d.symlink(name, target) })
}

// WriteFile writes the content of r to the new file p, which replaces any file. It sets the permission
// bits of mode, whatever the umask is, and makes the missing parents of p.
func (t *Tree) WriteFile(p string, mode fs.FileMode, r io.Reader) error {
	return t.in(p, func(d openFolder, name string) error { return d.write(name, mode, r) })
}

// WriteText writes a new file with mode 0644.
func (t *Tree) WriteText(p, content string) error {
	return t.WriteFile(p, 0o644, strings.NewReader(content))
}

// CopyFile copies the file at the host path host, following links there, to p.
func (t *Tree) CopyFile(host, p string, mode fs.FileMode) error {
	f, err := os.Open(host)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.WriteFile(p, mode, f)
}

// EmptyFolder makes p an empty folder, and makes its missing parents. It fails if a parent
// is a link or a file.
func (t *Tree) EmptyFolder(p string) error {
	return t.in(p, func(d openFolder, name string) error {
		// Through a link, the emptied folder would be another one of the image's.
		if d.path != path.Dir(p) {
			return fmt.Errorf("%w: a parent of %s is a link", ErrRefused, p)
		}
		return d.empty(name)
	})
}

// IsFolder reports whether the clean path p leads to a folder without following a link.
func (t *Tree) IsFolder(p string) bool {
	d, err := t.existing(p)
	if err != nil {
		return false
	}
	d.close()
	return d.path == p
}

// OpenFile opens the regular file at the guest path p for reading. It follows links. The
// error wraps fs.ErrNotExist if p does not exist or is not a regular file.
func (t *Tree) OpenFile(p string) (*os.File, error) {
	// O_NONBLOCK: the open must not wait for a writer if p is a pipe.
	f, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenRoot opens the folder p. It follows links, inside the tree.
func (t *Tree) OpenRoot(p string) (*os.Root, error) {
	d, err := t.existing(p)
	if err != nil {
		return nil, err
	}
	return d.Root, d.file.Close()
}

// GuestPath returns the guest path of an open file of the tree, with all links resolved.
func (t *Tree) GuestPath(f *os.File) (string, error) {
	real, err := os.Readlink(descriptorPath(f))
	if err != nil {
		return "", err
	}
	p, isBelow := strings.CutPrefix(real+"/", t.path+"/") // with the slashes, the root is below itself
	if !isBelow {
		return "", fmt.Errorf("%w: %q is outside", ErrRefused, f.Name())
	}
	return path.Join("/", p), nil
}

// Copy copies a host folder over the existing files. It copies neither other file systems
// mounted there nor the folder skip, if that is not nil. Links stay links.
func (t *Tree) Copy(ctx context.Context, dir string, skip fs.FileInfo) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return t.CopyFrom(ctx, root, ".", "/", skip)
}

// CopyFrom is Copy for the file or folder name in root, which becomes the path to. A folder's content is added to
// that of an existing one. No link leads out of root.
func (t *Tree) CopyFrom(ctx context.Context, root *os.Root, name, to string, skip fs.FileInfo) error {
	return t.copyTree(ctx, copier{applier: newApplier(t), from: root, name: name, to: to, skip: func(_ string, info fs.FileInfo) bool {
		return skip != nil && os.SameFile(info, skip)
	}})
}

func (t *Tree) copyTree(ctx context.Context, c copier) error {
	top, err := c.from.Lstat(c.name)
	if err != nil {
		return err
	}
	c.device, c.plain, c.links = deviceOf(top), true, map[uint64]string{}
	dir := c.from.Name()
	return filepath.WalkDir(dir+"/"+c.name, func(p string, _ fs.DirEntry, err error) error { // it only lists: files are opened in the root
		name, outside := filepath.Rel(dir, p)
		if err := errors.Join(err, outside); err != nil {
			return err
		}
		return c.copy(ctx, name)
	})
}

// copier copies the file or folder name in the root from to the path to.
type copier struct {
	*applier
	from     *os.Root
	name, to string
	device   uint64
	skip     func(name string, info fs.FileInfo) bool // of folders
	overlay  bool                                     // from is the upper folder of an overlay
	links    map[uint64]string                        // its copied files with several names, by inode
}

func deviceOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Dev }

func rdevOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Rdev }

// copy copies a file or an empty folder, and returns fs.SkipDir for a folder whose content is not copied. The applier
// bounds the depth.
func (c copier) copy(ctx context.Context, name string) error {
	info, err := c.from.Lstat(name)
	if err := errors.Join(err, context.Cause(ctx), c.budget.entry()); err != nil {
		return err
	}
	below, err := filepath.Rel(c.name, name)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: path.Join(c.to, below), Mode: int64(info.Mode().Perm())}
	switch kind := info.Mode().Type(); {
	case kind == fs.ModeDir:
		h.Typeflag = tar.TypeDir
		if err := c.entry(h, nil); err != nil {
			return err
		}
		// Neither mounted file systems, such as /proc, nor the store that is being written.
		if deviceOf(info) != c.device || c.skip(name, info) {
			return fs.SkipDir
		}
		return c.replaceFolder(name, h.Name)
	case kind == fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = c.from.Readlink(name); err != nil {
			return err
		}
		return c.entry(h, nil)
	case kind == 0:
		return c.file(ctx, name, h)
	case !c.overlay || kind != fs.ModeDevice|fs.ModeCharDevice || rdevOf(info) != 0: // not a whiteout: overlayfs.rst of the kernel
		c.Dropped++
	}
	return c.in(h.Name, func(d openFolder, name string) error { return d.RemoveAll(name) })
}

func (c copier) file(ctx context.Context, name string, h *tar.Header) error {
	// O_NONBLOCK: the open must not wait if a pipe has replaced the file.
	f, err := c.from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
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
	if s := info.Sys().(*syscall.Stat_t); c.overlay && s.Nlink > 1 {
		if h.Linkname = c.links[s.Ino]; h.Linkname != "" {
			h.Typeflag = tar.TypeLink
			return c.entry(h, nil)
		}
		c.links[s.Ino] = h.Name
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	return c.entry(h, c.budget.reader(ctx, f))
}

// LinkAll adds the files of another image's tree on the same file system: folders are made, files and links get another
// name by a hard link. The tree must be empty, and files of both must not be changed any more.
func (t *Tree) LinkAll(ctx context.Context, from string) error {
	return filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err = errors.Join(err, context.Cause(ctx)); err != nil || file == from {
			return err
		}
		to := t.HostPath(file[len(from):])
		if e.IsDir() {
			return os.Mkdir(to, 0o755)
		}
		return os.NewSyscallError("linkat", unix.Linkat(unix.AT_FDCWD, file, unix.AT_FDCWD, to, 0)) // also of a symbolic link
	})
}

// Overlay applies the upper folder of an overlay, whose lower folder the tree is a copy of, as the next layer. It leaves out
// the content of the folders skip, by their absolute paths. No other process may write to changes meanwhile.
func (t *Tree) Overlay(ctx context.Context, changes *os.File, skip []string) (err error) {
	root, err := os.OpenRoot(descriptorPath(changes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return t.copyTree(ctx, copier{applier: newApplier(t), from: root, name: ".", to: "/", overlay: true, skip: func(name string, _ fs.FileInfo) bool {
		return slices.Contains(skip, path.Join("/", name))
	}})
}

// replaceFolder empties the folder to if the overlay's folder name replaces it instead of being merged with it.
func (c copier) replaceFolder(name, to string) error {
	if !c.overlay {
		return nil
	}
	dir, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	value := make([]byte, 1)
	n, err := unix.Fgetxattr(int(dir.Fd()), "trusted.overlay.opaque", value)
	switch {
	case errors.Is(err, unix.ENODATA) || err == nil && (n != 1 || value[0] != 'y'):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", to, os.NewSyscallError("fgetxattr", err))
	}
	return c.in(to, openFolder.empty)
}
