package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultDir is the folder of the default store.
const DefaultDir = "/var/lib/gaol"

// Errors of the store, to be matched with errors.Is.
var (
	ErrNotFound  = errors.New("no such image")
	ErrAmbiguous = errors.New("more than one image has this prefix")
	ErrInUse     = errors.New("image is in use")
)

// ErrNoStore is the error for a store that was named and does not exist. It wraps
// ErrNotFound.
var ErrNoStore error = &variantError{"there is no image store", ErrNotFound}

// Errors of a store of snapshots. Each wraps the corresponding error above.
var (
	ErrNoSnapshot        error = &variantError{"no such snapshot", ErrNotFound}
	ErrAmbiguousSnapshot error = &variantError{"more than one snapshot has this prefix", ErrAmbiguous}
)

// variantError wraps an error and replaces its text.
type variantError struct {
	text string
	is   error
}

func (e *variantError) Error() string { return e.text }
func (e *variantError) Unwrap() error { return e.is }

// kind is the kind of a store's content, with its errors.
type kind struct {
	name                       string
	notFound, ambiguous, inUse error
}

var (
	imageKind    = &kind{"image", ErrNotFound, ErrAmbiguous, ErrInUse}
	snapshotKind = &kind{"snapshot", ErrNoSnapshot, ErrAmbiguousSnapshot, &variantError{"snapshot is in use", ErrInUse}}
)

// Store is a folder of images. Any number of processes may use it at the same time. They
// synchronize through the file system only.
type Store struct {
	dir      string
	explicit bool // named by the caller of Open, so that a missing folder may be a mistake
	in       inputs
	kind     *kind
}

// Open returns the store in dir. An empty dir means [DefaultDir]. Open makes no folder: the
// first build or import does. Looking for images in a named dir that does not exist fails
// with ErrNoStore.
func Open(dir string) (*Store, error) {
	abs, err := filepath.Abs(cmp.Or(dir, DefaultDir))
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return &Store{dir: abs, explicit: dir != "", in: pinned(), kind: imageKind}, nil
}

// OpenSnapshots returns the snapshots of the store in dir: see [Open] and [Store.Snapshots].
func OpenSnapshots(dir string) (*Store, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return s.Snapshots()
}

// makeDirs makes the missing folders of the store.
func (s *Store) makeDirs() error {
	for _, sub := range []string{s.images(), s.names(), s.downloads(), s.locks(), s.tmp()} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return fmt.Errorf("image store: %w", err)
		}
	}
	return nil
}

// check returns ErrNoStore for a named folder that does not exist.
func (s *Store) check() error {
	if !s.explicit {
		return nil
	}
	if _, err := os.Stat(s.dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", s.dir, ErrNoStore)
	}
	return nil
}

// Dir returns the store's folder, an absolute path.
func (s *Store) Dir() string { return s.dir }

func (s *Store) images() string    { return filepath.Join(s.dir, "images") }
func (s *Store) names() string     { return filepath.Join(s.dir, "names") }
func (s *Store) downloads() string { return filepath.Join(s.dir, "downloads") }
func (s *Store) locks() string     { return filepath.Join(s.dir, "locks") }
func (s *Store) tmp() string       { return filepath.Join(s.dir, "tmp") }

// lock takes the lock that protects the images, the names and the list of temporary
// folders. Callers hold it only briefly.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	return lockWait(ctx, filepath.Join(s.dir, "lock"))
}

// tempDir is a temporary folder on the store's file system. Its maker holds a lock in it
// while it lives.
type tempDir struct {
	dir  string
	lock *os.File
}

const tempLock = ".lock"

// makeTemp makes a temporary folder. It also removes temporary folders of killed processes.
func (s *Store) makeTemp(ctx context.Context) (*tempDir, error) {
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	// The store's lock keeps other processes from sweeping the folder before it is locked.
	guard, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	if err := s.sweepTemp(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.tmp(), "")
	if err != nil {
		return nil, err
	}
	lock, err := lockNow(filepath.Join(dir, tempLock), os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &tempDir{dir, lock}, nil
}

// sweepTemp removes the temporary folders of processes that were killed.
// Precondition: the store's lock is held.
func (s *Store) sweepTemp() error {
	entries, err := os.ReadDir(s.tmp())
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(s.tmp(), e.Name())
		lock, err := lockNow(filepath.Join(dir, tempLock), os.O_RDWR, unix.LOCK_EX)
		switch {
		case errors.Is(err, errLocked):
			continue
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
		err = os.RemoveAll(dir)
		if lock != nil {
			lock.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// path returns the host path of name in the folder.
func (t *tempDir) path(name string) string { return filepath.Join(t.dir, name) }

// Close removes the folder and its content.
func (t *tempDir) Close() error {
	// The lock is released last, so that no sweep meets a half-removed folder.
	return errors.Join(os.RemoveAll(t.dir), t.lock.Close())
}

// errLocked is the error of lockNow if another open file holds the lock.
var errLocked = errors.New("locked")

// lockPoll is the interval at which a held lock is tried again. A context cannot interrupt
// a blocking flock.
const lockPoll = 20 * time.Millisecond

// lockNow takes a flock, unix.LOCK_EX or unix.LOCK_SH, on the file at path. flags are those
// of open. Closing the file releases the lock, and so does the end of the process, however
// it ends: a lock is never stale.
func lockNow(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	// With LOCK_NB, flock does not wait, and so no signal interrupts it.
	if err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "flock", Path: path, Err: err}
}

// lockWait takes the exclusive lock on the file at path, which it creates if missing. It
// waits until the lock is released or ctx ends.
func lockWait(ctx context.Context, path string) (*os.File, error) {
	for {
		if ctx.Err() != nil { // a canceled caller must not get a free lock either
			return nil, context.Cause(ctx)
		}
		if f, err := lockNow(path, os.O_RDWR|os.O_CREATE, unix.LOCK_EX); !errors.Is(err, errLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}
