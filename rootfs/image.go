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

	"gaol/jail/mounts"
	"gaol/rootfs/tree"
)

const (
	idPrefix  = tree.IDPrefix
	imageFile = "image.json"
	imageRoot = "rootfs"
	imageList = "files" // what tree.Seal lists
	imageLock = "lock"
)

// Image describes a stored image as it was when it was read. Its tree can be removed at any
// time, unless the caller holds a lease from [Image.Hold].
type Image struct {
	ID      string    `json:"id"`              // "sha256:" and 64 hex digits, over the tree
	Names   []string  `json:"names,omitempty"` // sorted
	Node    string    `json:"node"`            // version of Node, such as "24.21.0"; "" for none
	NPM     string    `json:"npm"`             // version of the npm CLI; "" for an imported image
	Arch    string    `json:"arch"`            // as npm names it: "x64" or "arm64"
	Size    int64     `json:"size"`            // bytes of all files
	Created time.Time `json:"created"`         // when it was added to this store

	// Packages are the Debian packages that its files come from, sorted by name; nil
	// for a minimal or an imported image.
	Packages []Package `json:"packages,omitempty"`

	Imported *Imported `json:"imported,omitempty"` // nil for an image that gaol built

	dir  string
	kind *kind
}

// Root returns the host path of the image's tree, which must not be written to.
func (i *Image) Root() string { return filepath.Join(i.dir, imageRoot) }

// OpenFolder opens a folder of the image's tree with O_PATH, unless it is a link. Other links in
// the path, which a guest may have made, are resolved inside the tree.
func (i *Image) OpenFolder(path string) (*os.File, error) {
	root, err := os.OpenFile(i.Root(), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return mounts.OpenIn(root, path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
}

// StoreDir returns the folder of the image's store.
func (i *Image) StoreDir() string { return filepath.Dir(filepath.Dir(i.dir)) }

// mixID returns the image's id for the id of its tree. It also covers the list of packages, and
// the config of an imported image, so that images that differ only there are different images.
func (i *Image) mixID(treeID string) (string, error) {
	var more any = i.Packages
	if i.Imported != nil {
		more = i.Imported.Config
	}
	return tree.MixID(treeID, more)
}

// Lease prevents the removal of an image until it is closed or the process ends.
type Lease struct{ lock *os.File }

// Close releases the lease.
func (l *Lease) Close() error { return l.lock.Close() }

// Hold returns a lease of the image. The files below a mounted overlay must not be removed.
// An image can have any number of leases. Hold fails with ErrNotFound if the image has been
// removed or is being removed.
func (i *Image) Hold() (*Lease, error) {
	path := filepath.Join(i.dir, imageLock)
	lock, err := lockNow(path, os.O_RDONLY, unix.LOCK_SH)
	// A removal may have moved the folder between the open and the lock.
	if err == nil && !isAt(lock, path) {
		lock.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %s: %w", i.kind.name, i.ID, i.kind.notFound)
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s %s: %w", i.kind.name, i.ID, err)
	}
	return &Lease{lock}, nil
}

// isAt reports whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	held, err := f.Stat()
	found, missing := os.Lstat(path)
	return err == nil && missing == nil && os.SameFile(held, found)
}

// load reads the image.json of the image with these hex digits. It does not set Names.
func (s *Store) load(digits string) (*Image, error) {
	i := &Image{dir: filepath.Join(s.images(), digits), kind: s.kind}
	file := filepath.Join(i.dir, imageFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, i); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return i, nil
}
