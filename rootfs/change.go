package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// commit moves the finished image in the folder dir into the store, under
// these names. When the store has an image of the same content, that one stays
// and gets the names.
func (s *Store) commit(ctx context.Context, dir string, i *Image, names []string) (*Image, error) {
	return s.commitWith(ctx, dir, i, names, func() error { return nil })
}

// commitWith is commit that also does more, under the store's lock. If that or a name
// fails, the image and its names go as they came.
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
	fresh, err := s.take(dir, digits, i)
	if err != nil {
		return nil, err
	}
	if err = more(); err == nil {
		err = s.setNames(names, digits)
	}
	switch {
	case err != nil && fresh:
		return nil, errors.Join(err, s.giveBack(digits, dir))
	case err != nil:
		return nil, err
	}
	return s.get(digits)
}

// take moves an image from the folder dir into the store, or merges it with that of the
// same content. It reports whether there was none.
// Precondition: the store's lock is held.
func (s *Store) take(dir, digits string, i *Image) (fresh bool, err error) {
	place := filepath.Join(s.images(), digits)
	if _, err := os.Lstat(filepath.Join(place, imageFile)); err == nil {
		return false, s.merge(digits, i)
	}
	// A removal that was killed may have left names, which are not to come to life again.
	all, err := s.allNames()
	for _, name := range all[digits] {
		err = errors.Join(err, os.Remove(filepath.Join(s.names(), name)))
	}
	if err != nil {
		return false, err
	}
	return true, os.Rename(dir, place)
}

// giveBack undoes take of a fresh image, and what came with that, unless somebody has
// found and holds it by now: it stays then, without a name.
// Precondition: the store's lock is held.
func (s *Store) giveBack(digits, dir string) error {
	place := filepath.Join(s.images(), digits)
	lock, err := lockNow(filepath.Join(place, imageLock), os.O_RDONLY, unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.Rename(place, dir); err != nil {
		return err
	}
	return s.discardBlobs(&scratch{dir: filepath.Dir(dir)})
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

// Remove takes a name out of the store, and the image with it when that has no other but
// those that every build gives, such as node24.21.0-23ed74ce174b. Of an id, or a prefix of one, it
// takes the image with all its names. That is ErrInUse while anybody holds a [Lease] of
// the image. The downloads that it was
// built from stay, so that building it again needs no network; the layers that it was
// imported from go, unless another image has them too.
func (s *Store) Remove(ref string) error {
	return s.remove(ref, func(*Image) error { return nil })
}

// Prune removes all images that have no name and are not in use, and returns their ids,
// also if there is an error.
func (s *Store) Prune() (ids []string, err error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		err := s.remove(i.ID, func(i *Image) error {
			if len(i.Names) > 0 {
				return ErrInUse
			}
			return nil
		})
		switch {
		case err == nil:
			ids = append(ids, i.ID)
		case !errors.Is(err, ErrInUse) && !errors.Is(err, ErrNotFound):
			return ids, err
		}
	}
	return ids, nil
}

// remove is Remove if allow has nothing against it, which is asked under the store's lock.
func (s *Store) remove(ref string, allow func(*Image) error) error {
	if err := s.check(); err != nil {
		return err
	}
	trash, err := s.scratch(context.Background())
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind, ref, err)
	}
	// The slow part, deleting, comes last and needs no lock.
	return errors.Join(s.discard(ref, allow, trash), trash.Close())
}

// hasOther reports whether ref is a name of the image and not the last that people use.
func (i *Image) hasOther(ref string) bool {
	return slices.Contains(i.Names, ref) && slices.ContainsFunc(i.Names, func(name string) bool {
		return name != ref && !builtForm.MatchString(name)
	})
}

// discard moves an image into trash: from one moment to the next it is gone.
func (s *Store) discard(ref string, allow func(*Image) error, trash *scratch) error {
	guard, err := s.lock(context.Background())
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind, ref, err)
	}
	defer guard.Close()
	i, err := s.Lookup(ref)
	if err == nil {
		err = allow(i)
	}
	if err != nil {
		return err
	}
	if i.hasOther(ref) {
		return os.Remove(filepath.Join(s.names(), ref))
	}
	lock, err := lockNow(filepath.Join(i.dir, imageLock), os.O_RDONLY, unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		err = s.kind.says(ErrInUse)
	}
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind, ref, err)
	}
	defer lock.Close()
	if err := os.Rename(i.dir, trash.path("image")); err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind, ref, err)
	}
	for _, name := range i.Names {
		if err := os.Remove(filepath.Join(s.names(), name)); err != nil {
			return fmt.Errorf("remove %s %q: %w", s.kind, ref, err)
		}
	}
	if err := s.discardBlobs(trash); err != nil {
		return fmt.Errorf("remove %s %q: layers: %w", s.kind, ref, err)
	}
	return nil
}
