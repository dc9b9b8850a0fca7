package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAdd(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := s.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	fill := func(text string) func(string) error {
		return func(root string) error {
			path := filepath.Join(root, "workspace", "a")
			return errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, old, old), os.Symlink("/etc", filepath.Join(root, "link")))
		}
	}
	a, err := snapshots.Add(t.Context(), []string{"mine"}, fill("one"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(a.Root(), "workspace/a"))
	if err != nil || info.Mode() != 0o600 || !info.ModTime().Equal(old) || a.Size != 3 {
		t.Errorf("%+v, %v; size %d", info, err, a.Size)
	}
	same, err := snapshots.Add(t.Context(), []string{"again"}, fill("one"))
	if err != nil || same.ID != a.ID || len(same.Names) != 2 {
		t.Errorf("an equal tree: %+v, %v", same, err)
	}
	if b, err := snapshots.Add(t.Context(), []string{"mine"}, fill("two")); err != nil || b.ID == a.ID {
		t.Errorf("another tree: %+v, %v", b, err)
	}
	if _, err := s.Lookup("mine"); !errors.Is(err, ErrNotFound) {
		t.Errorf("as an image: %v", err)
	}
	held, err := a.Hold()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshots.Remove(a.ID); !errors.Is(err, ErrInUse) || strings.Contains(err.Error(), "image") {
		t.Errorf("removed while it is held: %v", err)
	}
	if _, err := snapshots.Lookup("nope"); !errors.Is(err, ErrNoSnapshot) || !errors.Is(err, ErrNotFound) || err.Error() != `snapshot "nope": no such snapshot` {
		t.Errorf("a missing snapshot: %v", err)
	}
	held.Close()
	if _, err := snapshots.Remove(a.ID); err != nil {
		t.Error(err)
	}
	left(t, snapshots)
}

func TestAddRefuses(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	for name, fill := range map[string]func(string) error{
		"fails":  func(string) error { return full },
		"a pipe": func(root string) error { return unix.Mkfifo(filepath.Join(root, "p"), 0o600) },
		"set-user-id": func(root string) error {
			f := filepath.Join(root, "s")
			return errors.Join(os.WriteFile(f, nil, 0o600), os.Chmod(f, os.ModeSetuid|0o755))
		},
	} {
		if i, err := s.Add(t.Context(), nil, fill); err == nil {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if _, err := s.Add(t.Context(), []string{"../x"}, func(string) error { return nil }); err == nil {
		t.Error("a bad name: no error")
	}
	left(t, s)
}

// left fails if the store has temporary folders.
func left(t *testing.T, s *Store) {
	t.Helper()
	if list, err := os.ReadDir(s.tmp()); err != nil || len(list) > 0 {
		t.Errorf("%v, %v remain", list, err)
	}
}
