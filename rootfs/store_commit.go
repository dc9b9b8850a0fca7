package rootfs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/rootfs/download"
	"gaol/rootfs/tree"
)

// commit moves the finished image in temp into the store, with these names. If the store has
// an image of the same content, that one stays and gets the names. If a name fails, the image stays
// without it, for Prune.
func (s *Store) commit(ctx context.Context, temp *tempDir, i *Image, names []string) (*Image, error) {
	dir := temp.path("image")
	i.Created = cmp.Or(i.Created, time.Now().UTC().Truncate(time.Second))
	// The second file is the one that leases lock.
	err := errors.Join(i.writeJSON(filepath.Join(dir, imageFile)), os.WriteFile(filepath.Join(dir, imageLock), nil, 0o644))
	if err != nil {
		return nil, err
	}
	// Before the rename, so that a crash cannot leave an incomplete image under its final
	// path. This also reports a full disk that delayed allocation has hidden.
	if err := syncTree(dir); err != nil {
		return nil, err
	}
	guard, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	digits := strings.TrimPrefix(i.ID, idPrefix)
	if err := s.insert(dir, digits, i); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := s.setName(name, digits); err != nil {
			return nil, err
		}
	}
	return s.get(digits)
}

// insert moves an image from the folder dir into the store, or merges it with an existing
// one of the same content.
// Precondition: the store's lock is held.
func (s *Store) insert(dir, digits string, i *Image) error {
	place := filepath.Join(s.images(), digits)
	if _, err := os.Lstat(filepath.Join(place, imageFile)); err == nil {
		return s.merge(digits, i)
	}
	// A killed removal may have left names of this image, which must not be valid again.
	all, err := s.allNames()
	for _, name := range all[digits] {
		err = errors.Join(err, os.Remove(filepath.Join(s.names(), name)))
	}
	if err != nil {
		return err
	}
	return os.Rename(dir, place)
}

// merge updates a stored image from a new one of the same content and id: that gaol built
// it, or that it is trusted.
// Precondition: the store's lock is held.
func (s *Store) merge(digits string, fresh *Image) error {
	old, err := s.load(digits)
	if err != nil || old.Imported == nil {
		return err
	}
	switch {
	case fresh.Imported == nil:
		old.Imported, old.Node, old.NPM = nil, fresh.Node, fresh.NPM
	case fresh.Imported.TrustNode && !old.Imported.TrustNode:
		old.Imported.TrustNode = true
	default:
		return nil
	}
	file := filepath.Join(old.dir, imageFile)
	if err := old.writeJSON(file + ".new"); err != nil {
		return err
	}
	return errors.Join(syncTree(old.dir), os.Rename(file+".new", file))
}

func (i *Image) writeJSON(file string) error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// syncTree writes the cached data of dir's file system to the disk.
func syncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return &os.PathError{Op: "sync", Path: dir, Err: err}
	}
	return nil
}

// Snapshots returns the store of snapshots below this store. A snapshot contains the files that
// guests left in their trees. It is an image without Node that starts no jail. Snapshots
// have their own names, and ids over their content.
func (s *Store) Snapshots() (*Store, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &Store{dir: filepath.Join(s.dir, "snapshots"), in: s.in, kind: snapshotKind}, nil
}

// Add stores the files, folders and links that fill writes below root, an empty folder. All
// must belong to root. Their modes and times are kept. A set-user-ID bit or another type of
// file is an error. Equal trees become one image.
func (s *Store) Add(ctx context.Context, names []string, fill func(root string) error) (*Image, error) {
	b := &build{store: s, plan: plan{names: names}, report: download.NewReporter(nil)}
	return b.add(ctx, "", tree.Sum, fill)
}

// add stores a tree that fill makes, whose id is computed by a function of package tree. If id is not empty, the image must have it.
func (b *build) add(ctx context.Context, id string, sum func(root string, list io.Writer) (string, int64, error), fill func(root string) error) (_ *Image, err error) {
	for _, name := range b.plan.names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.makeTree(ctx); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	if err := fill(b.root()); err != nil {
		return nil, err
	}
	if err = b.sum(sum); err == nil && id != "" && b.image.ID != id {
		err = fmt.Errorf("%w: %s, want %s", ErrDigest, b.image.ID, id)
	}
	if err == nil {
		err = b.commit(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return &b.image, nil
}
