package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// commit moves the finished image in the folder dir into the store, under
// these names. When the store has an image of the same content, that one stays
// and gets the names.
func (s *Store) commit(ctx context.Context, dir string, i *Image, names []string) (*Image, error) {
	return s.commitWith(ctx, dir, i, names, func() error { return nil })
}

// commitWith is commit that also does more, under the store's lock.
func (s *Store) commitWith(ctx context.Context, dir string, i *Image, names []string, more func() error) (*Image, error) {
	if err := i.save(dir); err != nil {
		return nil, err
	}
	// Before the rename: what a crash leaves behind a finished name must be whole.
	// It also tells of a full disk that delayed allocation had not noticed.
	if err := syncTree(dir); err != nil {
		return nil, err
	}
	guard, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	digits := strings.TrimPrefix(i.ID, idPrefix)
	err = os.Rename(dir, filepath.Join(s.images(), digits))
	if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) {
		return nil, err
	}
	if err != nil {
		if err := s.merge(digits, i); err != nil {
			return nil, err
		}
	}
	if err := more(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := s.setName(name, digits); err != nil {
			return nil, err
		}
	}
	return s.get(digits)
}

// syncTree writes what the file system of dir holds in memory to the disk.
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

// Remove takes the image that ref means, with all its names, out of the store.
// It is ErrInUse while anybody holds a [Lease] of it. The downloads that it was
// built from stay, so that building it again needs no network; the layers that it was
// imported from go, unless another image has them too.
func (s *Store) Remove(ref string) error {
	trash, err := s.scratch(context.Background())
	if err != nil {
		return fmt.Errorf("remove image %q: %w", ref, err)
	}
	// The slow part, deleting, comes last and needs no lock.
	return errors.Join(s.discard(ref, trash), trash.Close())
}

// discard moves an image into trash: from one moment to the next it is gone.
func (s *Store) discard(ref string, trash *scratch) error {
	guard, err := s.lock(context.Background())
	if err != nil {
		return fmt.Errorf("remove image %q: %w", ref, err)
	}
	defer guard.Close()
	i, err := s.Lookup(ref)
	if err != nil {
		return err
	}
	lock, err := lockNow(filepath.Join(i.dir, imageLock), os.O_RDONLY, unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		err = ErrInUse
	}
	if err != nil {
		return fmt.Errorf("remove image %q: %w", ref, err)
	}
	defer lock.Close()
	if err := os.Rename(i.dir, trash.path("image")); err != nil {
		return fmt.Errorf("remove image %q: %w", ref, err)
	}
	for _, name := range i.Names {
		if err := os.Remove(filepath.Join(s.names(), name)); err != nil {
			return fmt.Errorf("remove image %q: %w", ref, err)
		}
	}
	if err := s.discardBlobs(trash); err != nil {
		return fmt.Errorf("remove image %q: layers: %w", ref, err)
	}
	return nil
}
