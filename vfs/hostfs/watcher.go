package hostfs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Op is a combination of the changes of a path.
type Op uint8

const (
	Created Op = 1 << iota // or moved there
	Written                // of a file: its content, or its size
	Removed                // or moved away
	Changed                // permissions, owner or times

	// Lost is for a folder: some events at it or below it could not be reported, or some
	// folders could not be watched. To know its state, list it.
	Lost
)

// String reads "created|written".
func (o Op) String() string {
	var names []string
	for i, name := range []string{"created", "written", "removed", "changed", "lost"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Event lists the changes of a path in one span of time, without their order.
type Event struct {
	Path string
	Op   Op
}

// WatchOptions configure Watch. A zero field means its default.
type WatchOptions struct {
	Recursive bool          // also watch the folders below, including new ones
	Folders   int           // limit of watched folders; default 1,024; beyond it, Watch fails, or folders are Lost later
	Pending   int           // limit of paths in one span; default 4,096; more are Lost
	Span      time.Duration // from the first event until Next returns; default 20 ms
}

// Watcher reports the changes in a folder. It uses one of the host's inotify instances, by
// default 128 for each user, and one inotify watch for each folder.
type Watcher struct {
	fs   *FS
	dir  string
	opts WatchOptions
	file *os.File // inotify

	mu    sync.Mutex
	paths map[int32]string // of the watched folders, by watch descriptor
	batch batch
}

// Watch watches the folder that a path leads to. It reports all changes from now on, until
// the watcher is closed. If the folder is moved, it is still watched and reported by its old
// path. Writes of the FS itself are reported as Created when the complete file is in its
// place.
func (f *FS) Watch(dir string, o WatchOptions) (*Watcher, error) {
	if o.Folders < 0 || o.Pending < 0 || o.Span < 0 {
		return nil, &fs.PathError{Op: "watch", Path: dir, Err: fs.ErrInvalid}
	}
	o.Folders, o.Pending = cmp.Or(o.Folders, 1024), cmp.Or(o.Pending, 4096)
	o.Span = cmp.Or(o.Span, 20*time.Millisecond)
	w := &Watcher{fs: f, dir: dir, opts: o, paths: map[int32]string{}, batch: batch{index: map[string]int{}}}
	if err := f.at("watch", dir, func(base) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return err
		}
		w.file = os.NewFile(uintptr(fd), "inotify")
		f.open.Store(w, nil)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := w.addTree(w.dir, nil); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close stops the watcher and a running Next. It is no error if the watcher or its FS has
// been closed already.
func (w *Watcher) Close() error {
	w.fs.open.Delete(w)
	if err := w.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Next waits for an event, and returns it with all events of the span that follows: each
// path once. The error is ctx's cause, or fs.ErrClosed if the watcher is closed.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = w.file.SetReadDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-ended // so that the deadline does not affect the next call
		}
	}()
	buf := make([]byte, 64<<10)
	due := time.Time{} // end of the span
	for {
		if due.IsZero() && len(w.batch.events) > 0 {
			due = time.Now().Add(w.opts.Span)
		}
		err := w.file.SetReadDeadline(due)
		if err == nil && ctx.Err() != nil { // the deadline that AfterFunc sets may have been overwritten
			return nil, context.Cause(ctx) // the next call returns pending events
		}
		if err == nil {
			err = w.read(buf)
		}
		expired := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case w.batch.lost, expired && ctx.Err() == nil && len(w.batch.events) > 0:
			return w.batch.drain(), nil
		case err != nil && !expired:
			return nil, w.fs.fail("watch", w.dir, err)
		}
	}
}

// read reads and parses pending inotify events.
func (w *Watcher) read(buf []byte) error {
	n, err := w.file.Read(buf)
	w.parse(buf[:max(n, 0)])
	return err
}

// batch collects the events for Next.
type batch struct {
	events []Event
	index  map[string]int // in events, by path
	lost   bool           // some events were dropped
}

// add adds an event. Beyond limit paths, it marks top as Lost instead.
func (b *batch) add(path string, op Op, limit int, top string) {
	i, known := b.index[path]
	switch {
	case known:
		b.events[i].Op |= op
	case len(b.events) < limit:
		b.index[path] = len(b.events)
		b.events = append(b.events, Event{path, op})
	default:
		if b.lost = true; path != top {
			b.add(top, Lost, limit+1, top)
		}
	}
}

func (b *batch) drain() []Event {
	events := b.events
	*b = batch{index: map[string]int{}}
	return events
}
