package hostfs

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// Rename moves the file at from to the path to. It replaces an existing file by a file and
// an empty folder by a folder (rename(2)). It moves links themselves. Both paths must be on
// one mount, see package vfs, or it fails with EXDEV.
func (f *FS) Rename(from, to string) error {
	if _, err := vfs.ParsePath(to); err != nil {
		return &fs.PathError{Op: "rename", Path: to, Err: errPath}
	}
	return f.at("rename", from, func(root base) error {
		old, err := locateUnmounted(root, from)
		if err != nil {
			return err
		}
		defer old.close()
		target, err := locateUnmounted(root, to)
		if err != nil {
			return pathError("rename", to, err)
		}
		defer target.close()
		return unix.Renameat(old.dir, old.name, target.dir, target.name)
	})
}

// Symlink makes a link at path with the given text, which only the guest interprets. The
// text must not be empty, have 4,096 bytes or more, or contain a NUL byte.
func (f *FS) Symlink(text, path string) error {
	return f.onPlace("symlink", path, locateNew, func(p place) error {
		if err := checkLink(text); err != nil {
			return err
		}
		return unix.Symlinkat(text, p.dir, p.name)
	})
}

func checkLink(text string) error {
	if text == "" || len(text) >= unix.PathMax || strings.ContainsRune(text, 0) {
		return errLink
	}
	return nil
}
