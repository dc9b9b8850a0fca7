package hostfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// watchMask is the set of inotify events of each folder. IN_EXCL_UNLINK excludes events of files
// that are already removed but still open.
const watchMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM |
	unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// opRows map the events of inotify(7) to an Op.
var opRows = []struct {
	mask uint32
	op   Op
}{
	{unix.IN_CREATE | unix.IN_MOVED_TO, Created},
	{unix.IN_MODIFY, Written},
	{unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF, Removed},
	{unix.IN_ATTRIB, Changed},
}

// note adds an event to the batch, except for temporary files of the FS itself.
func (w *Watcher) note(path string, op Op) {
	if op != 0 && !w.fs.isTempName(path[strings.LastIndexByte(path, '/')+1:]) {
		w.batch.add(path, op, w.opts.Pending, w.dir)
	}
}

// parse parses inotify events: wd, mask, cookie and length of name, 4 bytes each, and the
// name, padded with NUL bytes.
func (w *Watcher) parse(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		word := func(i int) uint32 { return binary.NativeEndian.Uint32(buf[4*i:]) }
		wd, mask, size := int32(word(0)), word(1), int(word(3))
		name, _, _ := bytes.Cut(buf[unix.SizeofInotifyEvent:][:size], []byte{0})
		w.event(wd, mask, string(name))
		buf = buf[unix.SizeofInotifyEvent+size:]
	}
}

func (w *Watcher) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.note(w.dir, Lost)
		w.rescan()
		return
	}
	path, known := w.paths[wd]
	if !known {
		return
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(w.paths, wd)
		return
	}
	if name != "" {
		path = join(path, name)
	} else if mask&unix.IN_DELETE_SELF != 0 && path != w.dir {
		return // its parent reports it
	}
	for _, row := range opRows {
		if mask&row.mask != 0 {
			w.note(path, row.op)
		}
	}
	if !w.opts.Recursive || mask&unix.IN_ISDIR == 0 || name == "" {
		return
	}
	if mask&unix.IN_MOVED_FROM != 0 {
		w.unwatchTree(path)
	}
	if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
		w.scanNew(path)
	}
}

// scanNew watches a new folder and those below it, and reports their existing content. It
// returns false if it has missed some.
func (w *Watcher) scanNew(path string) (all bool) {
	err := w.addTree(path, func(p string) { w.note(p, Created) })
	if err != nil && !isMissing(unwrapped(err)) {
		w.note(path, Lost)
	}
	return err == nil
}

// rescan scans all folders after the kernel has dropped events. It also removes the watches
// of folders that no longer exist, which would count towards the limit forever.
func (w *Watcher) rescan() {
	before := w.paths
	w.paths = map[int32]string{}
	all := w.opts.Recursive && w.scanNew(w.dir)
	for wd, path := range before {
		if _, found := w.paths[wd]; found {
			continue
		}
		if w.paths[wd] = path; all && path != w.dir {
			w.unwatch(wd)
		}
	}
}

// addTree watches a folder and, if the watcher is recursive, those below it. It calls report
// for each file below it.
func (w *Watcher) addTree(path string, report func(path string)) error {
	// A lower limit than for a walk: a guest could move a large tree back and forth.
	limit := w.opts.Pending
	if report == nil {
		limit = w.fs.limits.Entries
	}
	return w.fs.walk(access{fs: w.fs}, "watch", path, limit, func(v item) error {
		switch {
		case v.err != nil:
			return nil // the guest cannot read the folder either
		case report != nil && !v.isTop():
			report(v.path)
		}
		if v.info.IsDir() || v.isTop() { // at the top, any other file fails with ENOTDIR
			return w.addItem(v)
		}
		return nil
	})
}

// addItem watches a folder of a walk. It skips folders that the guest has removed or made
// unreadable meanwhile.
func (w *Watcher) addItem(v item) error {
	err := w.fs.step("watch", v.path, func(base) error {
		return onChild(v.dir, v.name, func(n *node) error { return w.add(n, v.path) })
	})
	switch e := unwrapped(err); {
	case !v.isTop() && (isMissing(e) || e == unix.EACCES || errors.Is(e, errKernel)):
		return fs.SkipDir
	case err == nil && !w.opts.Recursive:
		return fs.SkipAll
	}
	return err
}

// add watches a folder, or records its new path if it is already watched.
func (w *Watcher) add(n *node, path string) error {
	if len(w.paths) >= w.opts.Folders {
		return &LimitError{"folders", int64(w.opts.Folders)}
	}
	return control(w.file, func(fd int) error {
		wd, err := unix.InotifyAddWatch(fd, n.link(), watchMask)
		if err == nil {
			w.paths[int32(wd)] = path
		}
		return err
	})
}

// unwatchTree removes the watches of a folder that was moved, and of those below it. If it
// was moved to another watched folder, they are watched again.
func (w *Watcher) unwatchTree(path string) {
	for wd, p := range w.paths {
		if p == path || strings.HasPrefix(p, path+"/") {
			w.unwatch(wd)
		}
	}
}

func (w *Watcher) unwatch(wd int32) {
	delete(w.paths, wd)
	_ = control(w.file, func(fd int) error {
		_, err := unix.InotifyRmWatch(fd, uint32(wd))
		return err // the kernel may have removed it already
	})
}
