package hostfs

import (
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// Remove removes a file, a link or an empty folder.
func (f *FS) Remove(path string) error {
	return f.onPlace("remove", path, locateUnmounted, func(p place) error { return removeEntry(p.dir, p.name) })
}

// removeEntry removes a file, a link or an empty folder.
func removeEntry(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == unix.EISDIR || err == unix.EPERM { // POSIX specifies EPERM for folders
		if asFolder := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); asFolder != unix.ENOTDIR {
			return asFolder
		}
	}
	return err
}

// RemoveAll removes the file at a path and everything below it. It follows no link. A
// missing file is not an error. It stops with a *LimitError after Limits.Entries entries.
// Folders may be nested to any depth. If the guest's user may not remove some files,
// RemoveAll removes all others and returns an error. A guest that keeps making new entries
// makes it fail.
func (f *FS) RemoveAll(path string) error {
	return f.at("removeall", path, func(root base) error {
		p, err := locateUnmounted(root, path)
		if err == unix.ENOENT {
			return nil
		}
		if err != nil {
			return err
		}
		defer p.close()
		r := &remover{left: f.limits.Entries, limit: f.limits.Entries, top: -1}
		return r.remove(p, 0)
	})
}

// remover removes one tree.
type remover struct {
	left, limit int
	top         int // descriptor of the tree's first folder
	moved       int // folders moved into it
}

// mostOpen bounds the depth of a remover, which keeps a descriptor open for each level.
// Deeper folders are moved up into the first one: a process has few descriptors, and a guest
// can nest folders deeper than any path can name.
const mostOpen = 64

func (r *remover) remove(p place, depth int) error {
	if r.left--; r.left < 0 {
		return &LimitError{"entries", int64(r.limit)}
	}
	err := removeEntry(p.dir, p.name)
	if err == unix.ENOENT {
		return nil
	}
	if err != unix.ENOTEMPTY && err != unix.EEXIST && !(isDenied(err) && isFolder(p)) {
		return err
	}
	if depth == mostOpen {
		r.moved++
		return unix.Renameat(p.dir, p.name, r.top, ".gaol-removed-"+strconv.Itoa(r.moved))
	}
	if err := r.empty(p, depth); err != nil {
		return err
	}
	if err := unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR); err != unix.ENOENT {
		return err
	}
	return nil
}

func isDenied(err error) bool { return err == unix.EACCES || err == unix.EPERM }

func isFolder(p place) bool {
	st, err := statAt(p.dir, p.name)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// empty removes the content of a folder. It lists the folder again until it finds nothing
// that it can remove, because deep folders may have been moved into it.
func (r *remover) empty(p place, depth int) error {
	var dir *os.File
	err := onChild(p.dir, p.name, func(n *node) (err error) {
		dir, err = n.reopen(unix.O_RDONLY | unix.O_DIRECTORY) // it may have been replaced since removeEntry
		return err
	})
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	fd := int(dir.Fd())
	if depth == 0 {
		r.top = fd
	}
	for {
		names, err := namesIn(dir, r.limit)
		if err != nil && !isLimit(err) || len(names) == 0 {
			return err
		}
		var failed error
		removed := false
		for _, e := range names {
			inside := place{fd, e.Name()}
			err := inside.checkUnmounted()
			if err == nil {
				err = r.remove(inside, depth+1)
			}
			switch {
			case isLimit(err):
				return err
			case err != nil:
				failed = err
			default:
				removed = true
			}
		}
		if !removed {
			return failed
		}
	}
}

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
