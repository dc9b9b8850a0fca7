package layer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

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

// isWhiteout reports whether a file of an overlay's upper folder hides the name: overlayfs.rst of the kernel.
func isWhiteout(info fs.FileInfo) bool {
	return info.Mode().Type() == fs.ModeDevice|fs.ModeCharDevice && rdevOf(info) == 0
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
