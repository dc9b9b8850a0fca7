package hostfs

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// WalkFunc is called for each file that Walk visits. fs.SkipDir and fs.SkipAll work as in
// fs.WalkDir. Any other error ends the walk.
//
// If a folder cannot be read, Walk calls the function a second time for it, with the cause
// in err. If that call returns nil, the walk continues after the folder.
type WalkFunc func(path string, info *Info, err error) error

// Walk visits the file that a path leads to and everything below it, sorted by name, each
// folder before its content. It follows only a link at path itself. It fails beyond
// Limits.Entries files or Limits.Depth nested folders. It visits the root of a kernel file
// system but does not enter it. visit may call methods of the FS.
//
// Walk keeps the folders open that it is in. If the guest moves one of them, the walk stays
// in it, and the reported paths are those by which it was reached.
func (f *FS) Walk(path string, visit WalkFunc) error {
	return f.walk(access{fs: f}, "walk", path, f.limits.Entries, func(v item) error { return visit(v.path, v.info, v.err) })
}

// item is a file that a walk visits.
type item struct {
	dir  int    // descriptor of its folder; -1 for the start of the walk
	name string // in dir
	path string
	info *Info
	err  error
}

// walker walks one tree. The caller's code runs between its steps.
type walker struct {
	access
	op    string
	limit int
	left  int // rest of limit
	visit func(item) error
}

func (f *FS) walk(a access, op, path string, limit int, visit func(item) error) error {
	w := &walker{access: a, op: op, limit: limit, left: limit, visit: visit}
	var n *node
	err := f.at(op, path, func(root int) (err error) {
		n, err = lookup(root, path, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer n.close()
	first := item{dir: -1, path: path, info: f.info(path, &n.stat)}
	err = w.visitTree(first, func() (*node, error) { return newNode(openPath(n.fd, ".", 0, 0)) }, 0)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

// visitTree visits a file, and the content of a folder. open opens the file.
func (w *walker) visitTree(v item, open func() (*node, error), depth int) error {
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
		w.left -= len(inside) // counted when they are read into memory, not when they are visited
		return w.each(fd, v.path, inside, depth)
	}
	return w.unread(v, err)
}

// unread handles a folder that cannot be read. A folder of the kernel, or one that was
// replaced meanwhile, counts as empty.
func (w *walker) unread(v item, err error) error {
	switch e := unwrapped(err); {
	case errors.Is(e, errKernel), isMissing(e):
		return nil
	case isLimit(e):
		return pathError(w.op, v.path, &LimitError{"entries", int64(w.limit)})
	case errors.Is(e, w.fs.closedErr):
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
		v := item{dir: fd, name: info.name, path: join(path, info.name), info: info}
		err := w.visitTree(v, func() (*node, error) { return child(fd, info.name) }, depth+1)
		if errors.Is(err, fs.SkipDir) { // for a file, it skips the rest of the folder
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

// Entry is a file in a listing.
type Entry struct {
	Path string
	*Info
}

// List lists everything below a folder in the order of Walk. If some folders cannot be read,
// it returns an error together with the rest.
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
