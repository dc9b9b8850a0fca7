package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const systemDir = "/var/lib/gaol"

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

// kind is what a store holds, with the errors that speak of it.
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

// DefaultDir returns the folder of the default store: /var/lib/gaol if it is writable, or
// else gaol below $XDG_DATA_HOME, or else ~/.local/share/gaol.
func DefaultDir() (string, error) { return defaultDir(systemDir) }

func defaultDir(system string) (string, error) {
	if writable(system) {
		return system, nil
	}
	// The XDG specification says that a relative $XDG_DATA_HOME must be ignored.
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "gaol"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("image store: %w", err)
	}
	return filepath.Join(home, ".local/share/gaol"), nil
}

// writable reports whether this process can write to the folder dir, or make it.
func writable(dir string) bool {
	err := unix.Access(dir, unix.W_OK)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Access(filepath.Dir(dir), unix.W_OK)
	}
	return err == nil
}

// Open returns the store in dir. An empty dir means [DefaultDir]. Open makes no folder: the
// first build or import does. Looking for images in a named dir that does not exist fails
// with ErrNoStore.
func Open(dir string) (*Store, error) {
	explicit := dir != ""
	if !explicit {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return &Store{dir: dir, explicit: explicit, in: pinned(), kind: imageKind}, nil
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
func (s *Store) blobs() string     { return filepath.Join(s.dir, "blobs") }
func (s *Store) locks() string     { return filepath.Join(s.dir, "locks") }
func (s *Store) tmp() string       { return filepath.Join(s.dir, "tmp") }

// lock takes the lock that protects the images, the names and the list of temporary
// folders. Callers hold it only briefly.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	return lockWait(ctx, filepath.Join(s.dir, "lock"))
}
