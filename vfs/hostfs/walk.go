package hostfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
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
	dir  int    // descriptor of its folder
	name string // in dir; "." for the start of the walk, whose descriptor dir is
	path string
	info *Info
	err  error
}

func (v item) isTop() bool { return v.name == "." }

// walker walks one tree. The caller's code runs between its steps.
type walker struct {
	access
	op    string
	limit int
	left  int // rest of limit
	visit func(item) error
}

func (f *FS) walk(a access, op, path string, limit int, visit func(item) error) error {
	var n *node
	err := f.at(op, path, func(root base) (err error) {
		n, err = lookup(root, path, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer n.close()
	w := &walker{access: a, op: op, limit: limit, left: limit, visit: visit}
	err = w.visitTree(item{dir: n.fd, name: ".", path: path, info: f.info(path, &n.stat)}, 0)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

// visitTree visits a file, and the content of a folder.
func (w *walker) visitTree(v item, depth int) error {
	if err := w.visit(v); err != nil || !v.info.IsDir() {
		if errors.Is(err, fs.SkipDir) && v.info.IsDir() {
			return nil
		}
		return err
	}
	var dir *os.File
	var inside []fs.DirEntry
	err := w.step(w.op, v.path, func() error {
		return onChild(v.dir, v.name, func(n *node) (err error) {
			dir, inside, err = w.list(n, w.left)
			return err
		})
	})
	defer func() { _ = dir.Close() }() // nil if it cannot be opened
	switch {
	case err != nil:
		return w.unread(v, err)
	case len(inside) > 0 && depth == w.fs.limits.Depth:
		return pathError(w.op, v.path, &LimitError{"folders deep", int64(depth)})
	}
	w.left -= len(inside) // counted when they are read into memory, not when they are visited
	for _, e := range inside {
		err := w.visitTree(item{dir: int(dir.Fd()), name: e.Name(), path: join(v.path, e.Name()), info: e.(*Info)}, depth+1)
		if errors.Is(err, fs.SkipDir) { // for a file, it skips the rest of the folder
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unread handles a folder that cannot be read. A folder of a kernel file system, or
// a folder replaced meanwhile, counts as empty.
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

// ListOptions restrict a listing. The zero value lists everything.
type ListOptions struct {
	Flat    bool   // without the content of subfolders
	Exclude string // without the content of subfolders with this name
	Entries int    // the most entries; zero: the limit of Walk
	Bytes   int    // the most bytes of all paths; zero: any
}

// List lists the files below a folder, in the order of Walk. Truncated reports whether entries are missing: beyond a
// bound, or of subfolders that cannot be read.
func (f *FS) List(ctx context.Context, path string, o ListOptions) (list []Entry, truncated bool, err error) {
	size := 0
	err = f.Walk(path, func(p string, info *Info, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && p == path:
			return err
		case err != nil:
			truncated = true
			return nil
		case p == path && !info.IsDir():
			return &fs.PathError{Op: "list", Path: path, Err: unix.ENOTDIR}
		case p == path:
			return nil
		}
		if size += len(p); o.Entries > 0 && len(list) == o.Entries || o.Bytes > 0 && size > o.Bytes {
			truncated = true
			return fs.SkipAll
		}
		list = append(list, Entry{p, info})
		if info.IsDir() && (o.Flat || o.Exclude != "" && info.Name() == o.Exclude) {
			return fs.SkipDir
		}
		return nil
	})
	if isLimit(err) && len(list) > 0 {
		truncated, err = true, nil
	}
	return list, truncated, err
}

// host are the credentials of this process itself.
var host = credentials{own: true}

// access reads the files of a walk with the guest's credentials. If owned is set, it reads
// files that the guest owns with the host's credentials instead. A guest can always give
// itself the right to read its own files, so that this reveals nothing new. It still reads
// files of other owners with the guest's credentials.
type access struct {
	fs    *FS
	owned bool
}

// step is FS.step, with the host's credentials if owned is set. do must then open entries
// only by [onChild], in folders that list has opened, and read only in readAs.
func (a access) step(op, path string, do func() error) error {
	creds := a.fs.guest
	if a.owned {
		creds = host
	}
	return a.fs.stepAs(creds, op, path, func(base) error { return do() })
}

// readAs calls do, in a step, with the credentials for reading the node.
func (a access) readAs(n *node, do func() error) error {
	if !a.owned || int(n.stat.Uid) == a.fs.guest.uid {
		return do()
	}
	return a.fs.guest.act(do)
}

// list opens and lists a folder in a step. The caller closes dir, also after an error.
func (a access) list(n *node, limit int) (dir *os.File, inside []fs.DirEntry, err error) {
	err = a.readAs(n, func() (err error) {
		if dir, err = n.reopen(unix.O_RDONLY | unix.O_DIRECTORY); err != nil {
			return err
		}
		if a.owned { // its entries are opened with the host's credentials: check the right to search here
			if _, err := statAt(int(dir.Fd()), "."); err != nil {
				return err
			}
		}
		inside, err = a.fs.entries(dir, limit)
		return err
	})
	return dir, inside, err
}

// ReadDir lists a folder, sorted by name. It returns at most Limits.Entries entries, whose
// type is *Info. If the guest may read the folder but not search it, they have only a name
// and a type.
func (f *FS) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = f.onNode("open", path, 0, func(n *node) error {
		dir, err := n.reopen(unix.O_RDONLY | unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer dir.Close()
		list, err = f.entries(dir, f.limits.Entries)
		return err
	})
	return list, err
}

// entries lists an open folder from its start, sorted by name. It leaves out files that are
// removed meanwhile. If stat is denied, an entry has only its name and type. The type of the
// entries is *Info.
func (f *FS) entries(dir *os.File, limit int) ([]fs.DirEntry, error) {
	names, err := namesIn(dir, limit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	list := make([]fs.DirEntry, 0, len(names))
	err = kernfile.Control(dir, func(fd int) error {
		for _, e := range names {
			st, err := statAt(fd, e.Name())
			switch err {
			case nil:
				list = append(list, f.info(e.Name(), &st))
			case unix.EACCES:
				list = append(list, &Info{name: e.Name(), mode: e.Type(), owner: overflowID, group: overflowID})
			case unix.ENOENT:
			default:
				return err
			}
		}
		return nil
	})
	return list, err
}

// namesIn returns at most limit entries, unsorted. If there are more, it also returns a
// *LimitError.
func namesIn(dir *os.File, limit int) ([]fs.DirEntry, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, unwrapped(err)
	}
	names, err := dir.ReadDir(limit + 1)
	switch {
	case err != nil && err != io.EOF:
		return names, unwrapped(err)
	case len(names) > limit:
		return names[:limit], &LimitError{"entries", int64(limit)}
	}
	return names, nil
}
