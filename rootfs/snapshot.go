package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Snapshots are what guests left in their trees: a store of the same kind below this
// one, whose images hold no Node and start no jail. It has names, and ids over content,
// of its own.
func (s *Store) Snapshots() (*Store, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	snapshots, err := Open(filepath.Join(s.dir, "snapshots"))
	if err != nil {
		return nil, err
	}
	snapshots.given, snapshots.kind = false, snapshotKind
	return snapshots, nil
}

// Add takes in what fill writes below root, an empty folder: files, folders and links,
// all of root's. Modes and times stay as they are; a set-user-id bit is an error, and
// so is anything else. Equal trees are one image.
func (s *Store) Add(ctx context.Context, names []string, fill func(root string) error) (i *Image, err error) {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	scratch, err := s.scratch(ctx)
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	dir := scratch.path("image")
	root := filepath.Join(dir, imageRoot)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	if err := fill(root); err != nil {
		return nil, err
	}
	i = &Image{Created: time.Now().UTC().Truncate(time.Second)}
	if i.ID, i.Size, err = sum(root); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	if i, err = s.commit(ctx, dir, i, names); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return i, nil
}

// sum is seal for a tree that stays as it is.
func sum(root string) (id string, size int64, err error) {
	hash := sha256.New()
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		n, err := record(hash, path, name)
		size += n
		return err
	})
	return idPrefix + hex.EncodeToString(hash.Sum(nil)), size, err
}
