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

// Op is what happened to a path: one or more of the constants.
type Op uint8

const (
	Created Op = 1 << iota // or moved there
	Written                // of a file: its content, or its size
	Removed                // or moved away
	Changed                // permissions, owner or times

	// Lost is for a folder: more happened at it or below it than could be told or
	// watched. Who needs to know looks.
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

// Event tells what happened to a path in one span of time, in no order.
type Event struct {
	Path string
	Op   Op
}

// WatchOptions say what is watched. A zero field takes its default.
type WatchOptions struct {
	Recursive bool          // the folders below, too, as they come and go
	Folders   int           // that are watched; default 1,024; more are Lost, or an error of Watch
	Pending   int           // paths in one span; default 4,096; more are Lost
	Span      time.Duration // from the first event until it is told; default 20 ms
}

// Watcher tells what happens in a folder. It takes one of the host's inotify instances,
// of which there are 128 for a user by default, and a watch for each folder.
type Watcher struct {
	fs   *FS
	dir  string
	opts WatchOptions
	file *os.File // inotify

	mu    sync.Mutex
	paths map[int32]string // of the folders that are watched
	batch batch
}

// Watch watches the folder that a path leads to: it tells of all that happens from now
// on, until it is closed. The folder stays watched wherever it is moved, by its old path.
// What the FS writes is told of when it is whole and in its place: as Created.
func (f *FS) Watch(dir string, o WatchOptions) (*Watcher, error) {
	if o.Folders < 0 || o.Pending < 0 || o.Span < 0 {
		return nil, &fs.PathError{Op: "watch", Path: dir, Err: fs.ErrInvalid}
	}
	o.Folders, o.Pending = cmp.Or(o.Folders, 1024), cmp.Or(o.Pending, 4096)
	o.Span = cmp.Or(o.Span, 20*time.Millisecond)
	w := &Watcher{fs: f, dir: dir, opts: o, paths: map[int32]string{}}
	if err := f.at("watch", dir, func(int) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return err
		}
		w.file = os.NewFile(uintptr(fd), "inotify")
		f.keep(w)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Watcher) begin() error {
	if w.opts.Recursive {
		return w.addTree(w.dir, nil)
	}
	return w.addFirst()
}

// Close ends the watch, and Next. Where it has ended already, as by its FS, that is no
// error.
func (w *Watcher) Close() error {
	w.fs.drop(w)
	if err := w.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Next waits until something has happened, and tells what did in the span from then on:
// each path once. The error is ctx's cause, or fs.ErrClosed of a closed watcher.
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
			<-ended // so that it does not end the next Next
		}
	}()
	buf := make([]byte, 64<<10)
	due := time.Time{} // when the span ends
	for {
		if due.IsZero() && !w.batch.empty() {
			due = time.Now().Add(w.opts.Span)
		}
		if err := w.file.SetReadDeadline(due); err != nil {
			return nil, w.fail(err)
		}
		if ctx.Err() != nil { // whose deadline may have been overwritten
			return nil, context.Cause(ctx) // what there is, the next Next tells
		}
		n, err := w.file.Read(buf)
		w.take(buf[:max(n, 0)])
		switch {
		case w.batch.lost:
			return w.batch.take(), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if ctx.Err() == nil && !w.batch.empty() {
				return w.batch.take(), nil
			}
		case err != nil:
			return nil, w.fail(err)
		}
	}
}

func (w *Watcher) fail(err error) error {
	w.fs.mu.RLock()
	defer w.fs.mu.RUnlock()
	if w.fs.closed {
		err = w.fs.gone
	} else if errors.Is(err, os.ErrClosed) {
		err = fs.ErrClosed
	}
	return &fs.PathError{Op: "watch", Path: w.dir, Err: unwrapped(err)}
}

// batch is what Next returns.
type batch struct {
	order []string
	ops   map[string]Op
	lost  bool // it is full
}

func (b *batch) empty() bool { return len(b.order) == 0 }

// add adds to what happened to a path. Beyond limit paths, it is lost at top.
func (b *batch) add(path string, op Op, limit int, top string) {
	if b.ops == nil {
		b.ops = map[string]Op{}
	}
	if _, known := b.ops[path]; !known {
		if len(b.order) >= limit {
			if b.lost = true; path != top {
				b.add(top, Lost, limit+1, top)
			}
			return
		}
		b.order = append(b.order, path)
	}
	b.ops[path] |= op
}

func (b *batch) take() []Event {
	events := make([]Event, len(b.order))
	for i, p := range b.order {
		events[i] = Event{p, b.ops[p]}
	}
	*b = batch{}
	return events
}
