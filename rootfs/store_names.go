package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gaol/internal/lazyregexp"
)

// A name is a symbolic link in the folder names to the folder of an image. Looking it up
// takes one system call, and changing it is atomic.

var (
	nameForm   = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,127}$`)
	builtForm  = lazyregexp.New(`^node[0-9.]+-[0-9a-f]{12}$`) // the first name of a plan
	digitsForm = lazyregexp.New(`^[0-9a-f]{1,64}$`)
)

// CheckName returns an error if name cannot name an image or a snapshot, or looks like an
// id.
func CheckName(name string) error {
	if !nameForm().MatchString(name) {
		return fmt.Errorf("name %q: want 1 to 128 characters of a-z, 0-9 and, not at the start, ._-", name)
	}
	if len(name) == 64 && digitsForm().MatchString(name) {
		return fmt.Errorf("name %q: it looks like an id", name)
	}
	return nil
}

// setName points name at the image, and away from any other image. Without digits, it
// removes the name.
// Precondition: the store's lock is held.
func (s *Store) setName(name, digits string) error {
	if digits == "" {
		return os.Remove(filepath.Join(s.names(), name))
	}
	fresh := filepath.Join(s.names(), ".new") // no name starts with a dot
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Join("../images", digits), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(s.names(), name))
}

// setNames points all names at the image. If one fails, it restores the others.
// Precondition: the store's lock is held.
func (s *Store) setNames(names []string, digits string) (failed error) {
	for _, name := range names {
		before, err := s.named(name)
		if err == nil {
			err = s.setName(name, digits)
		}
		if err != nil {
			return err
		}
		defer func() {
			if failed != nil {
				failed = errors.Join(failed, s.setName(name, before))
			}
		}()
	}
	return nil
}

// named returns the hex digits of the image that name points at, or "".
func (s *Store) named(name string) (string, error) {
	if !nameForm().MatchString(name) {
		return "", nil
	}
	target, err := os.Readlink(filepath.Join(s.names(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return filepath.Base(target), err
}

// allNames returns the names of each image, by the hex digits of its id.
func (s *Store) allNames() (map[string][]string, error) {
	entries, err := os.ReadDir(s.names()) // sorted
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string][]string{}
	for _, e := range entries {
		digits, err := s.named(e.Name())
		if err != nil {
			return nil, err
		}
		if digits != "" {
			all[digits] = append(all[digits], e.Name())
		}
	}
	return all, nil
}
