package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A name is a symbolic link in the folder of names to the image's folder, so
// that looking one up is one system call and changing one is atomic.

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)
	builtForm  = regexp.MustCompile(`^node[0-9.]+-[0-9a-f]{12}$`) // those of plans, see inputs.plan
	digitsForm = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
)

// CheckName refuses what can't name an image or a snapshot, or could be taken for an id.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("name %q: only a-z, 0-9 and ._- inside it, 128 at most", name)
	}
	if len(name) == 64 && digitsForm.MatchString(name) {
		return fmt.Errorf("name %q: it looks like an id", name)
	}
	return nil
}

// setName makes name lead to the image, whatever it led to before.
// Precondition: the store's lock is held.
func (s *Store) setName(name, digits string) error {
	fresh := filepath.Join(s.names(), ".new") // no name starts with a dot
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Join("../images", digits), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(s.names(), name))
}

// setNames has all the names lead to the image, or if that fails, where they led before.
// Precondition: the store's lock is held.
func (s *Store) setNames(names []string, digits string) error {
	var before []string
	for n, name := range names {
		old, err := s.named(name)
		if err == nil {
			err = s.setName(name, digits)
		}
		if err != nil {
			for k := n - 1; k >= 0; k-- {
				err = errors.Join(err, s.resetName(names[k], before[k]))
			}
			return err
		}
		before = append(before, old)
	}
	return nil
}

// resetName makes name lead to what named gave before.
func (s *Store) resetName(name, digits string) error {
	if digits == "" {
		return os.Remove(filepath.Join(s.names(), name))
	}
	return s.setName(name, digits)
}

// named returns the hex digits that name leads to, or "".
func (s *Store) named(name string) (string, error) {
	if !nameForm.MatchString(name) {
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

// byName returns the image that name leads to, or ErrNotFound.
func (s *Store) byName(name string) (*Image, error) {
	digits, err := s.named(name)
	if err != nil {
		return nil, err
	}
	if digits == "" {
		return nil, s.kind.says(ErrNotFound)
	}
	return s.get(digits)
}

// get returns the image with these hex digits, its names included, or
// ErrNotFound.
func (s *Store) get(digits string) (*Image, error) {
	i, err := s.load(digits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.kind.says(ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	names, err := s.allNames()
	if err != nil {
		return nil, err
	}
	i.Names = names[digits]
	return i, nil
}

// Lookup returns the image that ref means: a name, an id, or a prefix of the
// id's digits that no other image has. The error is ErrNotFound or ErrAmbiguous.
func (s *Store) Lookup(ref string) (*Image, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	i, err := s.byName(ref)
	if errors.Is(err, ErrNotFound) {
		i, err = s.byPrefix(strings.TrimPrefix(ref, idPrefix))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", s.kind, ref, err)
	}
	return i, nil
}

func (s *Store) byPrefix(prefix string) (*Image, error) {
	if !digitsForm.MatchString(prefix) {
		return nil, s.kind.says(ErrNotFound)
	}
	entries, err := os.ReadDir(s.images())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), prefix)
	})
	switch len(entries) {
	case 0:
		return nil, s.kind.says(ErrNotFound)
	case 1:
		return s.get(entries[0].Name())
	}
	return nil, s.kind.says(ErrAmbiguous)
}

// List returns all images, the oldest first.
func (s *Store) List() ([]*Image, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.images())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %ss: %w", s.kind, err)
	}
	images := make([]*Image, 0, len(entries))
	for _, e := range entries {
		i, err := s.get(e.Name())
		if errors.Is(err, ErrNotFound) {
			continue // removed since the folder was read
		}
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", s.kind, err)
		}
		images = append(images, i)
	}
	slices.SortFunc(images, func(a, b *Image) int { return a.Created.Compare(b.Created) })
	return images, nil
}
