package hostfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// until collects events until they include the wanted Op of each path, or fails after a timeout.
func until(t *testing.T, w *Watcher, want map[string]Op) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[string]Op{}
	for {
		missing := false
		for p, op := range want {
			missing = missing || got[p]&op != op
		}
		if !missing {
			return
		}
		events, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("%v: got %v, want %v", err, got, want)
		}
		for _, e := range events {
			got[e.Path] |= e.Op
		}
	}
}

func newWatch(t *testing.T, f *FS, dir string, o WatchOptions) *Watcher {
	t.Helper()
	w, err := f.Watch(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestWatch(t *testing.T) {
	f, dir := newFS(t, Limits{})
	if err := f.MkdirAll("/w/old", 0); err != nil {
		t.Fatal(err)
	}
	flat, deep := newWatch(t, f, "/w", WatchOptions{}), newWatch(t, f, "/w", WatchOptions{Recursive: true})
	for _, do := range []struct {
		do         func() error
		flat, deep map[string]Op
	}{
		{func() error { return f.WriteFile("/w/a", []byte("x"), WriteOptions{}) }, map[string]Op{"/w/a": Created}, map[string]Op{"/w/a": Created}},
		{func() error { return os.WriteFile(dir+"/w/a", []byte("y"), 0) }, map[string]Op{"/w/a": Written}, map[string]Op{"/w/a": Written}},
		{func() error { return f.Chmod("/w/a", 0o600) }, map[string]Op{"/w/a": Changed}, map[string]Op{"/w/a": Changed}},
		{func() error { return f.Rename("/w/a", "/w/old/a") }, map[string]Op{"/w/a": Removed}, map[string]Op{"/w/a": Removed, "/w/old/a": Created}},
		{func() error { return f.MkdirAll("/w/n/e/w", 0) }, map[string]Op{"/w/n": Created}, map[string]Op{"/w/n": Created, "/w/n/e/w": Created}},
		{func() error { return f.WriteFile("/w/n/e/w/x", nil, WriteOptions{}) }, nil, map[string]Op{"/w/n/e/w/x": Created}},
		{func() error { return f.Rename("/w/n", "/w/m") }, map[string]Op{"/w/n": Removed, "/w/m": Created}, map[string]Op{"/w/m/e/w/x": Created}},
		{func() error { return f.Remove("/w/m/e/w/x") }, nil, map[string]Op{"/w/m/e/w/x": Removed}},
		{func() error { return f.RemoveAll("/w/m") }, map[string]Op{"/w/m": Removed}, map[string]Op{"/w/m/e": Removed}},
	} {
		if err := do.do(); err != nil {
			t.Fatal(err)
		}
		until(t, flat, do.flat)
		until(t, deep, do.deep)
	}
	if len(flat.paths) != 1 || len(deep.paths) != 2 {
		t.Errorf("%v and %v are watched", flat.paths, deep.paths)
	}
}

// TestWatchFlood checks that many events of a path become one, and that too many become Lost.
func TestWatchFlood(t *testing.T) {
	f, dir := newFS(t, Limits{})
	if err := f.WriteFile("/one", nil, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	w := newWatch(t, f, "/", WatchOptions{Recursive: true, Pending: 10, Span: 50 * time.Millisecond})
	for n := range 1000 {
		if err := os.Truncate(dir+"/one", int64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if events, err := w.Next(t.Context()); err != nil || len(events) != 1 || events[0] != (Event{"/one", Written}) {
		t.Error(events, err)
	}
	for n := range 100 {
		if err := f.Append(fmt.Sprint("/", n), nil, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := w.Next(t.Context())
	if err != nil || len(events) > 11 || events[len(events)-1] != (Event{"/", Lost}) {
		t.Error(events, err)
	}
	// More than the kernel's queue holds.
	for range 20_000 {
		if err := errors.Join(os.Truncate(dir+"/0", 1), os.Truncate(dir+"/1", 1)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, w, map[string]Op{"/": Lost})
	// More folders than may be watched.
	small := newWatch(t, f, "/", WatchOptions{Recursive: true, Folders: 2})
	if err := f.MkdirAll("/d/e/f", 0); err != nil {
		t.Fatal(err)
	}
	until(t, small, map[string]Op{"/d": Created | Lost})
}

// TestWatchAfterFlood checks that folders that were removed while events were lost no longer
// count as watched.
func TestWatchAfterFlood(t *testing.T) {
	f, dir := newMemoryFS(t, Limits{})
	folders := func(prefix string) (all []string) {
		for n := range 6 {
			all = append(all, fmt.Sprint("/", prefix, n))
		}
		return all
	}
	w := newWatch(t, f, "/", WatchOptions{Recursive: true, Folders: 8})
	for _, p := range append(folders("old"), "/0", "/1") {
		if err := f.MkdirAll(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Remove("/0"), f.Remove("/1")); err != nil {
		t.Fatal(err)
	}
	until(t, w, map[string]Op{"/old5": Created, "/1": Created | Removed})
	for range 20_000 { // more than the kernel's queue holds
		if err := errors.Join(os.Chmod(dir+"/old0", 0o700), os.Chmod(dir+"/old1", 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range folders("old") {
		if err := f.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	until(t, w, map[string]Op{"/": Lost})
	for _, p := range folders("new") {
		if err := f.MkdirAll(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	until(t, w, map[string]Op{"/new5": Created})
	if err := f.WriteFile("/new5/file", nil, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, w, map[string]Op{"/new5/file": Created})
}

// TestWatchTempFiles checks that temporary names of the host's own writes are not reported, and
// that a guest cannot hide a file by such a name.
func TestWatchTempFiles(t *testing.T) {
	f, dir := newFS(t, Limits{})
	w := newWatch(t, f, "/", WatchOptions{Recursive: true, Span: 100 * time.Millisecond})
	_, err := f.WriteFrom("/b", strings.NewReader("b"), WriteOptions{})
	if err = errors.Join(err, f.WriteFile("/a", []byte("a"), WriteOptions{}), f.WriteFile("/a", []byte("b"), WriteOptions{}), f.Append("/d/c", nil, WriteOptions{Parents: true})); err != nil {
		t.Fatal(err)
	}
	events, err := w.Next(t.Context())
	got := map[string]Op{}
	for _, e := range events {
		got[e.Path] = e.Op
	}
	if diff := cmp.Diff(map[string]Op{"/a": Created, "/b": Created, "/d": Created | Changed, "/d/c": Created}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, name := range []string{"/.gaol-x", "/.gaol-", "/.gaol-0123456789abcdef0123456789abcdef", "/.gaol-removed-1"} {
		if err := os.WriteFile(dir+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		until(t, w, map[string]Op{name: Created})
	}
}

func TestWatchEnds(t *testing.T) {
	f, _ := newFS(t, Limits{})
	w := newWatch(t, f, "/", WatchOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if _, err := w.Next(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := f.MkdirAll("/after", 0); err != nil {
		t.Fatal(err)
	}
	until(t, w, map[string]Op{"/after": Created}) // the watcher still works
	// Events read before the context ended are returned by the next call.
	long := newWatch(t, f, "/", WatchOptions{Span: time.Second})
	soon, cancelSoon := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelSoon()
	if err := f.MkdirAll("/early", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := long.Next(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	until(t, long, map[string]Op{"/early": Created})
	until(t, w, map[string]Op{"/early": Created})
	time.AfterFunc(20*time.Millisecond, func() { w.Close() })
	if _, err := w.Next(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	// A folder that the guest cannot read cannot be watched.
	if err := errors.Join(f.MkdirAll("/closed", 0), f.Chmod("/closed", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Watch("/closed", WatchOptions{}); !errors.Is(err, unix.EACCES) {
		t.Error(err)
	}
}
