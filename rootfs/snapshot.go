package rootfs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gaol/rootfs/download"
	"gaol/rootfs/tree"
)

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
func (s *Store) Add(ctx context.Context, names []string, fill func(root string) error) (_ *Image, err error) {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	b := &build{store: s, plan: plan{names: names}, report: download.NewReporter(nil)}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.makeTree(ctx); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	if err := fill(b.root()); err != nil {
		return nil, err
	}
	if err = b.sum(tree.Sum); err == nil {
		err = b.commit(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return &b.image, nil
}
