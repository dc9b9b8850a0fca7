package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/rootfs/tree"
)

// Remove removes a name from the store. It also removes the image if all other names
// are names that every build sets, such as node24.21.0-23ed74ce174b. If ref is an id or
// a prefix of one, Remove removes the image with all its names. It fails with ErrInUse while
// any process holds a [Lease] of the image. The downloads of a build stay, so that
// building the image again needs no network.
func (s *Store) Remove(ref string) (Removed, error) {
	return s.remove(ref, func(*Image) error { return nil })
}

// Removed describes the result of a removal.
type Removed struct {
	Ref   string // the id of the image, or the name that was removed from an image that stays
	Freed int64  // bytes on the store's disk, without files that have links elsewhere
}

// Prune removes all images that have no name and are not in use. Names that every build sets
// do not count, except those of the default and the minimal image of this version of gaol. Prune returns the results so far even if it fails.
func (s *Store) Prune() (removed []Removed, err error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	var current []string
	for _, o := range []BuildOptions{{}, {Minimal: true}} {
		if i, err := s.Stored(o); err == nil {
			current = append(current, i.ID)
		}
	}
	for _, i := range all {
		r, err := s.remove(i.ID, func(i *Image) error {
			if slices.Contains(current, i.ID) || i.hasOther("") {
				return ErrInUse
			}
			return nil
		})
		switch {
		case err == nil:
			removed = append(removed, r)
		case !errors.Is(err, ErrInUse) && !errors.Is(err, ErrNotFound):
			return removed, err
		}
	}
	return removed, nil
}

// remove is Remove if allow, called with the store's lock held, returns nil.
func (s *Store) remove(ref string, allow func(*Image) error) (r Removed, err error) {
	if err := s.check(); err != nil {
		return r, err
	}
	trash, err := s.makeTemp(context.Background())
	if err != nil {
		return r, fmt.Errorf("remove %s %q: %w", s.kind.name, ref, err)
	}
	// Close deletes the files, which is slow, after the lock has been released.
	defer func() { err = errors.Join(err, trash.Close()) }()
	if r.Ref, err = s.moveToTrash(ref, allow, trash); err == nil {
		_, r.Freed, _ = tree.Usage{}.Add(trash.path("image")) // a failed count is no failed removal
	}
	return r, err
}

// moveToTrash removes a name, or moves the image to trash, which is atomic. It returns Removed.Ref.
func (s *Store) moveToTrash(ref string, allow func(*Image) error, trash *tempDir) (string, error) {
	guard, err := s.lock(context.Background())
	if err != nil {
		return "", fmt.Errorf("remove %s %q: %w", s.kind.name, ref, err)
	}
	defer guard.Close()
	i, err := s.Lookup(ref)
	if err == nil {
		err = allow(i)
	}
	if err != nil {
		return "", err
	}
	if slices.Contains(i.Names, ref) && i.hasOther(ref) {
		return ref, os.Remove(filepath.Join(s.names(), ref))
	}
	if err := s.moveImage(i, trash); err != nil {
		return "", fmt.Errorf("remove %s %q: %w", s.kind.name, ref, err)
	}
	return i.ID, nil
}

// hasOther reports whether the image has another name than ref. A name that identifies
// the inputs of a build does not count.
func (i *Image) hasOther(ref string) bool {
	return slices.ContainsFunc(i.Names, func(name string) bool { return name != ref && !i.isOfBuild(name) })
}

// isOfBuild reports whether a name of the image identifies the inputs of a build. Users can give snapshots and
// imported images names of this form.
func (i *Image) isOfBuild(name string) bool {
	return i.kind == imageKind && (i.Imported == nil || i.Imported.Kind == kindDerived) && builtForm().MatchString(name)
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
