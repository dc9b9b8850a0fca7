package hostfs

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes a file, a link or an empty folder.
func (f *FS) Remove(path string) error {
	return f.at("remove", path, func(root int) error {
		p, err := locateFree(root, path)
		if err != nil {
			return err
		}
		defer p.close()
		return removeEntry(p.dir, p.name)
	})
}

// removeEntry removes what is no folder, or is an empty one.
func removeEntry(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == unix.EISDIR || err == unix.EPERM { // EPERM is POSIX's for folders
		if asFolder := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); asFolder != unix.ENOTDIR {
			return asFolder
		}
	}
	return err
}

// RemoveAll removes what is at a path and all below it, following no link. That there is
// nothing is no error. Of more than Limits.Entries, so many are removed. Folders may be
// nested to any depth. What the guest's user may not remove stays, and is the error,
// after all else is gone; a guest can keep making new entries, which then is the error.
func (f *FS) RemoveAll(path string) error {
	return f.at("removeall", path, func(root int) error {
		p, err := locateFree(root, path)
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
	top         int // the tree's first folder
	moved       int // folders moved into it
}

// mostOpen is how deep a remover goes. Deeper folders are moved up into the first one
// and so become shallow: the descriptors of a host process are few, and a guest can
// nest folders deeper than any path can name.
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

// empty removes what is in a folder, again and again while it finds what it could
// remove, as moved folders may come in behind it.
func (r *remover) empty(p place, depth int) error {
	n, err := child(p.dir, p.name)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer n.close()
	if !n.isFolder() {
		return unix.ENOTDIR // it was one a moment ago
	}
	fd, err := n.reopen(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if depth == 0 {
		r.top = fd
	}
	for {
		names, err := namesIn(fd, r.limit)
		if err != nil && !isLimit(err) || len(names) == 0 {
			return err
		}
		if failed, all := r.each(fd, names, depth); all || isLimit(failed) {
			return failed
		}
	}
}

// each removes entries. all tells whether none of them could be.
func (r *remover) each(fd int, names []dirent, depth int) (failed error, all bool) {
	all = true
	for _, e := range names {
		p := place{fd, e.name}
		err := p.free()
		if err == nil {
			err = r.remove(p, depth+1)
		}
		if err == nil {
			all = false
			continue
		}
		failed = err
		if isLimit(err) {
			break
		}
	}
	return failed, all
}
