package rootfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"gaol/rootfs/tree"
)

// Difference is a change of one file of a stored image.
type Difference = tree.Difference

// Errors of [Image.Verify], to be matched with errors.Is.
var (
	// ErrNoList is the error for an image of an older gaol, which stored no list of its files.
	ErrNoList = errors.New("an older gaol made it, and stored no list of its files")

	// ErrRecord is the error for an image whose description or list of files was changed.
	ErrRecord = errors.New("its image.json or list of files was changed: together they do not have the hash that is its id")
)

// VerifyOptions are the options of Verify. The zero value reads all files.
type VerifyOptions struct {
	// Sample makes Verify fast: it reads about this many bytes of randomly chosen files, and
	// an image's files that have another modification time than it gave them. It compares
	// everything else of all files. Zero reads all files.
	Sample int64
}

// Verify compares the image's files with its id, and returns the changes in the order of a
// walk. It follows no links and does not compare times. An error means that it could not
// compare: it wraps ErrNotFound for an image that was removed, ErrNoList or ErrRecord. Images
// of an older gaol can be verified as long as nothing was changed, if Sample is zero.
func (i *Image) Verify(ctx context.Context, o VerifyOptions) ([]Difference, error) {
	lease, err := i.Hold()
	if err != nil {
		return nil, err
	}
	defer func() { _ = lease.Close() }()
	found, err := i.verify(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("verify %s %s: %w", i.kind.name, i.ID, err)
	}
	return found, nil
}

func (i *Image) verify(ctx context.Context, o VerifyOptions) ([]Difference, error) {
	info, err := os.Stat(filepath.Join(i.dir, imageFile))
	if err != nil {
		return nil, err
	}
	compare := tree.CompareOptions{UID: info.Sys().(*syscall.Stat_t).Uid}
	if o.Sample > 0 {
		compare.Reads = i.sample(o.Sample)
	}
	list, err := os.ReadFile(filepath.Join(i.dir, imageList))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.Sample == 0:
		if list, err = i.makeList(); err != nil {
			return nil, err
		}
		compare.Reads = func(fs.FileInfo) bool { return false } // makeList has read them
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoList
	case err != nil:
		return nil, err
	case !i.isOf(tree.ListID(list)):
		return nil, ErrRecord
	}
	return tree.Compare(ctx, i.Root(), list, compare)
}

// makeList returns the list of an image that was stored without, if its files are unchanged.
func (i *Image) makeList() ([]byte, error) {
	var list bytes.Buffer
	id, _, err := tree.Sum(i.Root(), &list)
	if err != nil {
		return nil, err
	}
	if !i.isOf(id) {
		return nil, fmt.Errorf("its files were changed, and it is not known which: %w", ErrNoList)
	}
	return list.Bytes(), nil
}

// isOf reports whether treeID gives the image's id. It compares with the name of the image's folder,
// too, because image.json may have been changed.
func (i *Image) isOf(treeID string) bool {
	id, err := i.mixID(treeID)
	return err == nil && id == idPrefix+filepath.Base(i.dir) && id == i.ID
}

// sample chooses files to read. Times show no changes in snapshots, which keep the
// times of the guest's files.
func (i *Image) sample(bytes int64) func(fs.FileInfo) bool {
	share := float64(bytes) / float64(max(i.Size, 1))
	left := bytes
	return func(info fs.FileInfo) bool {
		if i.kind == imageKind && !info.ModTime().Equal(tree.Epoch) {
			return true
		}
		if info.Size() > left || rand.Float64() >= share {
			return false
		}
		left -= info.Size()
		return true
	}
}
