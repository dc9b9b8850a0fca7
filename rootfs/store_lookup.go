package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gaol/internal/lazyregexp"
)

// byName returns the image that name points at, or the kind's notFound.
func (s *Store) byName(name string) (*Image, error) {
	digits, err := s.named(name)
	if err != nil {
		return nil, err
	}
	if digits == "" {
		return nil, s.kind.notFound
	}
	return s.get(digits)
}

// get returns the image with these hex digits, including its names, or the kind's notFound.
func (s *Store) get(digits string) (*Image, error) {
	i, err := s.load(digits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.kind.notFound
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

// Lookup returns the image for ref: a name, an id, or a prefix of the digits of only one
// id. The error is ErrNotFound or ErrAmbiguous.
func (s *Store) Lookup(ref string) (*Image, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	i, err := s.byName(ref)
	if errors.Is(err, ErrNotFound) {
		i, err = s.byPrefix(strings.TrimPrefix(ref, idPrefix))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", s.kind.name, ref, err)
	}
	return i, nil
}

func (s *Store) byPrefix(prefix string) (*Image, error) {
	if !digitsForm().MatchString(prefix) {
		return nil, s.kind.notFound
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
		return nil, s.kind.notFound
	case 1:
		return s.get(entries[0].Name())
	}
	return nil, s.kind.ambiguous
}

// List returns all images, the oldest first.
func (s *Store) List() ([]*Image, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.images())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %ss: %w", s.kind.name, err)
	}
	names, err := s.allNames()
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", s.kind.name, err)
	}
	images := make([]*Image, 0, len(entries))
	for _, e := range entries {
		i, err := s.load(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the folder was read
		}
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", s.kind.name, err)
		}
		i.Names = names[e.Name()]
		images = append(images, i)
	}
	slices.SortFunc(images, func(a, b *Image) int { return a.Created.Compare(b.Created) })
	return images, nil
}

// A name is a symbolic link in the folder names to the folder of an image. Looking it up
// takes one system call, and changing it is atomic.

var (
	nameForm   = lazyregexp.New(`^[a-z0-9][a-z0-9._-]*$`)                         // without a bound, which takes 1 ms to compile
	builtForm  = lazyregexp.New(`^(node[0-9.]+-[0-9a-f]{12}|step-[0-9a-f]{32})$`) // the first name of a plan, and of a step
	digitsForm = lazyregexp.New(`^[0-9a-f]{1,64}$`)
)

func isName(name string) bool { return len(name) <= 128 && nameForm().MatchString(name) }

// CheckName returns an error if name cannot name an image or a snapshot, or looks like an
// id.
func CheckName(name string) error {
	if !isName(name) {
		return fmt.Errorf("name %q: want 1 to 128 characters of a-z, 0-9 and, not at the start, ._-", name)
	}
	if len(name) == 64 && digitsForm().MatchString(name) {
		return fmt.Errorf("name %q: it looks like an id", name)
	}
	if strings.HasPrefix(name, "step-") && builtForm().MatchString(name) {
		return fmt.Errorf("name %q: such names are given to results of steps", name)
	}
	return nil
}

// namesOf returns a list of a name that may be empty.
func namesOf(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	return []string{name}, CheckName(name)
}

// Tag gives the image for ref another name. If another image loses that name, moved is the id of that image.
func (s *Store) Tag(ctx context.Context, ref, name string) (i *Image, moved string, err error) {
	if err := CheckName(name); err != nil {
		return nil, "", err
	}
	if _, err := s.Lookup(ref); err != nil { // also if there is no store to lock
		return nil, "", err
	}
	guard, err := s.lock(ctx)
	if err != nil {
		return nil, "", err
	}
	defer guard.Close()
	if i, err = s.Lookup(ref); err != nil {
		return nil, "", err
	}
	digits := filepath.Base(i.dir)
	if old, err := s.byName(name); err == nil && old.ID != i.ID {
		moved = old.ID
	}
	if err := s.setName(name, digits); err != nil {
		return nil, "", err
	}
	i, err = s.get(digits)
	return i, moved, err
}

// setName points name at the image, and away from any other image.
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

// named returns the hex digits of the image that name points at, or "".
func (s *Store) named(name string) (string, error) {
	if !isName(name) {
		return "", nil
	}
	target, err := os.Readlink(filepath.Join(s.names(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return filepath.Base(target), err
}

// Names returns all names of images.
func (s *Store) Names() (names []string, err error) {
	all, err := s.allNames()
	return slices.Concat(slices.Collect(maps.Values(all))...), err
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
