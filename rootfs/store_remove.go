package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Remove removes a name from the store. It also removes the image if all other names
// are names that every build sets, such as node24.21.0-23ed74ce174b. If ref is an id or
// a prefix of one, Remove removes the image with all its names. It fails with ErrInUse while
// any process holds a [Lease] of the image. The downloads of a build stay, so that
// building the image again needs no network.
func (s *Store) Remove(ref string) error {
	return s.remove(ref, func(*Image) error { return nil })
}

// Prune removes all images that have no name and are not in use. It returns their ids, even
// if it fails.
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

// remove is Remove if allow, called with the store's lock held, returns nil.
func (s *Store) remove(ref string, allow func(*Image) error) error {
	if err := s.check(); err != nil {
		return err
	}
	trash, err := s.makeTemp(context.Background())
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind.name, ref, err)
	}
	// Close deletes the files, which is slow, after the lock has been released.
	return errors.Join(s.moveToTrash(ref, allow, trash), trash.Close())
}

// moveToTrash removes a name, or moves the image to trash, which is atomic.
func (s *Store) moveToTrash(ref string, allow func(*Image) error, trash *tempDir) error {
	guard, err := s.lock(context.Background())
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind.name, ref, err)
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
	if err := s.moveImage(i, trash); err != nil {
		return fmt.Errorf("remove %s %q: %w", s.kind.name, ref, err)
	}
	return nil
}

// hasOther reports whether ref is one of several names of the image. A name that identifies
// the inputs of a build does not count.
func (i *Image) hasOther(ref string) bool {
	return slices.Contains(i.Names, ref) && slices.ContainsFunc(i.Names, func(name string) bool {
		return name != ref && !builtForm().MatchString(name)
	})
}

// moveImage moves an image to trash, and removes its names.
// Precondition: the store's lock is held.
func (s *Store) moveImage(i *Image, trash *tempDir) error {
	lock, err := lockNow(filepath.Join(i.dir, imageLock), os.O_RDONLY, unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		return s.kind.inUse
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.Rename(i.dir, trash.path("image")); err != nil {
		return err
	}
	for _, name := range i.Names {
		if err := os.Remove(filepath.Join(s.names(), name)); err != nil {
			return err
		}
	}
	return nil
}
