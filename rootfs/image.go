package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	idPrefix  = "sha256:"
	imageFile = "image.json"
	imageRoot = "rootfs"
	imageLock = "lock"
)

// Image is one stored image. It is a value read from the store at one moment:
// the tree it tells of can be removed at any time, unless [Image.Hold] is held.
type Image struct {
	ID      string    `json:"id"`              // "sha256:" and 64 hex digits, over the tree
	Names   []string  `json:"names,omitempty"` // sorted
	Node    string    `json:"node"`            // version of Node, such as "24.21.0"; "" for none
	NPM     string    `json:"npm"`             // version of the npm CLI; "" for an imported image
	Arch    string    `json:"arch"`            // in npm's words: "x64" or "arm64"
	Size    int64     `json:"size"`            // bytes of all files
	Created time.Time `json:"created"`         // when it came into this store

	// Packages are the Debian packages that its files come from, sorted by name; nil
	// for a minimal or an imported image.
	Packages []Package `json:"packages,omitempty"`

	Imported *Imported `json:"imported,omitempty"` // nil for an image that gaol built

	dir  string
	kind kind
}

// Root returns the host path of the image's tree. Nobody may write there.
func (i *Image) Root() string { return filepath.Join(i.dir, imageRoot) }

// Lease keeps an image from being removed, until Close or the process's end.
type Lease struct{ lock *os.File }

// Close gives the image free.
func (l *Lease) Close() error { return l.lock.Close() }

// StoreDir returns the folder of the store that the image is in.
func (i *Image) StoreDir() string { return filepath.Dir(filepath.Dir(i.dir)) }

// Hold keeps the image from being removed while the lease is open: the files
// below a mounted overlay must not go away. Any number of leases can be held at
// a time. It is ErrNotFound when the image has been removed, or is being.
func (i *Image) Hold() (*Lease, error) {
	path := filepath.Join(i.dir, imageLock)
	lock, err := lockNow(path, os.O_RDONLY, unix.LOCK_SH)
	if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %s: %w", i.kind, i.ID, i.kind.says(ErrNotFound))
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s %s: %w", i.kind, i.ID, err)
	}
	// A removal may have moved the folder away between the open and the lock.
	if !samePath(lock, path) {
		_ = lock.Close()
		return nil, fmt.Errorf("%s %s: %w", i.kind, i.ID, i.kind.says(ErrNotFound))
	}
	return &Lease{lock}, nil
}

// samePath says whether f is still what path leads to.
func samePath(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	found, err := os.Lstat(path)
	return err == nil && os.SameFile(held, found)
}

// load reads the image with the hex digits of an id. Names are left out.
func (s *Store) load(digits string) (*Image, error) {
	dir := filepath.Join(s.images(), digits)
	text, err := os.ReadFile(filepath.Join(dir, imageFile))
	if err != nil {
		return nil, err
	}
	i := &Image{dir: dir, kind: s.kind}
	if err := json.Unmarshal(text, i); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, imageFile), err)
	}
	return i, nil
}

// save writes what load reads, and the file that leases lock, into dir.
func (i *Image) save(dir string) error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, imageFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, imageLock), nil, 0o644)
}
