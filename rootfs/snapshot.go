package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gaol/rootfs/tree"
)

// Snapshots returns the store of snapshots below this store. A snapshot has the files that
// guests left in their trees. It is an image without Node that starts no jail. Snapshots
// have their own names, and ids over their content.
func (s *Store) Snapshots() (*Store, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	snapshots, err := Open(filepath.Join(s.dir, "snapshots"))
	if err != nil {
		return nil, err
	}
	snapshots.explicit, snapshots.kind = false, snapshotKind
	return snapshots, nil
}

// Add stores the files, folders and links that fill writes below root, an empty folder. All
// must belong to root. Their modes and times are kept. A set-user-ID bit or another type of
// file is an error. Equal trees become one image.
func (s *Store) Add(ctx context.Context, names []string, fill func(root string) error) (i *Image, err error) {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	temp, err := s.makeTemp(ctx)
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	dir := temp.path("image")
	root := filepath.Join(dir, imageRoot)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	if err := fill(root); err != nil {
		return nil, err
	}
	i = &Image{}
	if i.ID, i.Size, err = tree.Sum(root); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	if i, err = s.commit(ctx, dir, i, names, nil); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return i, nil
}
