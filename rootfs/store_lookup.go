package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
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
