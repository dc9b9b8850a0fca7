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

// ErrNoStore is wrapped by errors about a store that was named and does not exist. It is
// ErrNotFound as well.
var ErrNoStore error = &specialError{"there is no image store", ErrNotFound}

// The same of a store of snapshots. Each is the one above as well.
var (
	ErrNoSnapshot        error = &specialError{"no such snapshot", ErrNotFound}
	ErrAmbiguousSnapshot error = &specialError{"more than one snapshot has this prefix", ErrAmbiguous}

	errSnapshotInUse error = &specialError{"snapshot is in use", ErrInUse}
)

// specialError is another error in other words.
type specialError struct {
	text string
	is   error
}

func (e *specialError) Error() string { return e.text }
func (e *specialError) Unwrap() error { return e.is }

// kind is what a store holds, as its errors call it.
type kind string

const (
	imageKind    kind = "image"
	snapshotKind kind = "snapshot"
)

// says gives what is an error about images in the words of the kind.
func (k kind) says(err error) error {
	if k == snapshotKind {
		for _, own := range []error{ErrNoSnapshot, ErrAmbiguousSnapshot, errSnapshotInUse} {
			if errors.Is(own, err) {
				return own
			}
		}
	}
	return err
}

// Store is a folder of images. Any number of processes may use one at a time;
// what they share, they share through the file system alone.
type Store struct {
	dir   string
	given bool // by the caller of Open: one that is missing may be a mistake
	in    inputs
	kind  kind
}

// DefaultDir returns the folder of the store where none is named: /var/lib/gaol
// where that can be written, else gaol below $XDG_DATA_HOME, else
// ~/.local/share/gaol.
func DefaultDir() (string, error) { return defaultDir(systemDir) }

func defaultDir(system string) (string, error) {
	if writable(system) {
		return system, nil
	}
	// A relative $XDG_DATA_HOME is to be ignored, says its specification.
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "gaol"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("image store: %w", err)
	}
	return filepath.Join(home, ".local/share/gaol"), nil
}

// writable says whether dir is a folder we can write to, or could make.
func writable(dir string) bool {
	err := unix.Access(dir, unix.W_OK)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Access(filepath.Dir(dir), unix.W_OK)
	}
	return err == nil
}

// Open returns the store in dir. An empty dir means [DefaultDir]. It makes nothing: the
// first image that is built or imported makes the store. To look for images in a dir
// that was named and does not exist is ErrNoStore.
func Open(dir string) (*Store, error) {
	given := dir != ""
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return &Store{dir: dir, given: given, in: pinned(), kind: imageKind}, nil
}

// make makes what is missing of the store's folders.
func (s *Store) make() error {
	for _, sub := range []string{s.images(), s.names(), s.downloads(), s.locks(), s.tmp()} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return fmt.Errorf("image store: %w", err)
		}
	}
	return nil
}

// check refuses a folder that was named and is missing.
func (s *Store) check() error {
	if !s.given {
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

// lock takes the lock under which the index of images and names, and the list
// of temporary folders, are changed. It is held for moments only.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	return lockWait(ctx, filepath.Join(s.dir, "lock"))
}
