package hostfs

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// WalkFunc is told of what Walk finds. Returning fs.SkipDir or fs.SkipAll does what it
// does for fs.WalkDir; another error ends the walk.
//
// err, if not nil, is why the folder at path, which it has been told of before, could not
// be read: returning nil goes on with what is behind it.
type WalkFunc func(path string, info *Info, err error) error

// Walk visits what a path leads to and all below it, in the order of names, each folder
// before what is in it. It follows no link but the path's own, and visits no more than
// Limits.Entries, and Limits.Depth folders deep. The kernel's own file systems are told
// of, not entered. visit may call the FS's methods.
//
// Its folders are open while they are walked, so it ends where it began whatever the
// guest moves meanwhile: paths are those that led there.
func (f *FS) Walk(path string, visit WalkFunc) error {
	return f.walk(reader{fs: f}, "walk", path, f.limits.Entries, func(v found) error { return visit(v.path, v.info, v.err) })
}

// found is something that a walk is at.
type found struct {
	dir  int    // the folder that it's in; -1 of the walk's first
	name string // in dir
	path string
	info *Info
	err  error
}

// walker walks one tree. Between its steps, code of the caller runs.
type walker struct {
	reader
	op    string
	limit int
	left  int // entries that may yet be found
	visit func(found) error
}

func (f *FS) walk(r reader, op, path string, limit int, visit func(found) error) error {
	w := &walker{reader: r, op: op, limit: limit, left: limit, visit: visit}
	var n *node
	err := f.at(op, path, func(root int) (err error) {
		n, err = lookup(root, path, false)
		return err
	})
	if err != nil {
		return err
	}
	defer n.close()
	err = w.meet(found{dir: -1, path: path, info: f.info(path, &n.stat)}, func() (*node, error) { return newNode(openPath(n.fd, ".", 0, 0)) }, 0)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

// meet visits something, and what is in it.
func (w *walker) meet(v found, open func() (*node, error), depth int) error {
	if err := w.visit(v); err != nil || !v.info.IsDir() {
		if errors.Is(err, fs.SkipDir) && v.info.IsDir() {
			return nil
		}
		return err
	}
	fd := -1
	var inside []*Info
	err := w.step(w.op, v.path, func() error {
		n, err := open()
		if err != nil {
			return err
		}
		defer n.close()
		if !n.isFolder() {
			return unix.ENOTDIR
		}
		fd, inside, err = w.list(n, w.left)
		return err
	})
	defer func() { closeFD(fd) }()
	switch {
	case err == nil && len(inside) > 0 && depth == w.fs.limits.Depth:
		return pathError(w.op, v.path, &LimitError{"folders deep", int64(depth)})
	case err == nil:
		w.left -= len(inside) // as they are in memory, not as they are visited
		return w.each(fd, v.path, inside, depth)
	}
	return w.unread(v, err)
}

// unread deals with a folder that can't be read. One that is the kernel's, or was
// replaced meanwhile, counts as empty.
func (w *walker) unread(v found, err error) error {
	switch e := unwrapped(err); {
	case errors.Is(e, errKernel), isMissing(e):
		return nil
	case isLimit(e):
		return pathError(w.op, v.path, &LimitError{"entries", int64(w.limit)})
	case errors.Is(e, w.fs.gone):
		return err
	}
	v.err = err
	if err := w.visit(v); !errors.Is(err, fs.SkipDir) {
		return err
	}
	return nil
}

func (w *walker) each(fd int, path string, inside []*Info, depth int) error {
	for _, info := range inside {
		v := found{dir: fd, name: info.name, path: join(path, info.name), info: info}
		err := w.meet(v, func() (*node, error) { return child(fd, info.name) }, depth+1)
		if errors.Is(err, fs.SkipDir) { // of what is no folder: the rest of this one
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func join(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

// Entry is something in a listing.
type Entry struct {
	Path string
	*Info
}

// List lists all that is below a folder, as Walk visits it. What can't be read is the
// error, beside what was found.
func (f *FS) List(path string) ([]Entry, error) {
	var list []Entry
	var unread error
	err := f.Walk(path, func(p string, info *Info, err error) error {
		switch {
		case err != nil:
			unread = err
		case p != path:
			list = append(list, Entry{p, info})
		case !info.IsDir():
			return &fs.PathError{Op: "list", Path: path, Err: unix.ENOTDIR}
		}
		return nil
	})
	if err == nil {
		err = unread
	}
	return slices.Clip(list), err
}
