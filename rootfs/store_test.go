package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// put stores an image that has only an id and names.
func put(t *testing.T, s *Store, digits string, names ...string) *Image {
	t.Helper()
	digits += strings.Repeat("0", 64-len(digits))
	w, err := s.makeTemp(t.Context())
	must(t, err)
	defer w.Close()
	must(t, os.MkdirAll(w.path("image/rootfs"), 0o755))
	must(t, os.WriteFile(w.path("image/"+imageList), nil, 0o600))
	created := time.Date(2026, 1, 1, 0, 0, len(digits), 0, time.UTC)
	i, err := s.commit(t.Context(), w, &Image{ID: idPrefix + digits, Created: created}, names)
	must(t, err)
	return i
}

func openEmpty(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "made/by/it"))
	must(t, err)
	must(t, s.makeDirs())
	return s
}

func TestLookup(t *testing.T) {
	s := openEmpty(t)
	one := put(t, s, "abc1", "one", "both").ID
	two := put(t, s, "abd2", "two", "both", "abc1") // a name has precedence over a prefix
	for ref, want := range map[string]string{
		"one": one, "both": two.ID, "abc1": two.ID, "two": two.ID,
		one: one, one[:11]: one, "abc10": one, "abd": two.ID,
		"sha256:ab": "ambiguous", "ab": "ambiguous",
		"": "none", "three": "none", "abc3": "none", "../names/one": "none", "sha256:": "none",
		"ABC1": "none", "/": "none", ".": "none", "..": "none", one + "0": "none",
	} {
		i, err := s.Lookup(ref)
		switch {
		case errors.Is(err, ErrAmbiguous):
			i = &Image{ID: "ambiguous"}
		case errors.Is(err, ErrNotFound):
			i = &Image{ID: "none"}
		case err != nil:
			t.Errorf("%q: %v", ref, err)
			continue
		}
		if i.ID != want {
			t.Errorf("%q is %s, want %s", ref, i.ID, want)
		}
	}
	if diff := cmp.Diff([]string{"abc1", "both", "two"}, two.Names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if i, err := s.Ensure(t.Context(), "one", BuildOptions{}); err != nil || i.ID != one {
		t.Errorf("Ensure: %v, %v", i, err)
	}
}

func TestRemove(t *testing.T) {
	s := openEmpty(t)
	one, two := put(t, s, "abc1", "one", "both"), put(t, s, "abd2", "two")
	if err := s.Remove("ab"); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("ambiguous: %v", err)
	}
	must(t, s.Remove("both"))
	if i, err := s.Lookup("one"); err != nil || len(i.Names) != 1 {
		t.Errorf("its other name: %+v, %v", i, err)
	}
	must(t, s.Remove("one"))
	for _, name := range []string{"one", "both"} {
		if err := s.Remove(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s again: %v", name, err)
		}
	}
	if _, err := os.Stat(one.Root()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its tree: %v", err)
	}
	images, err := s.List()
	must(t, err)
	if len(images) != 1 || images[0].ID != two.ID {
		t.Errorf("images %v", images)
	}
	must(t, s.Remove("abd"))
	checkEmpty(t, s)
}

func TestRemoveOfNames(t *testing.T) {
	const built = "node24.21.0-23ed74ce174b"
	for name, c := range map[string]struct {
		names []string
		ref   string
		left  []string
	}{
		"one of two":         {[]string{"a", "b"}, "a", []string{"b"}},
		"the last":           {[]string{"a"}, "a", nil},
		"the last but built": {[]string{built, "a"}, "a", nil},
		"built":              {[]string{built, "a"}, built, []string{"a"}},
		"built alone":        {[]string{built}, built, nil},
		"a major's":          {[]string{built, "node-24", "a"}, "a", []string{"node-24", built}},
		"an id":              {[]string{"a", "b"}, idPrefix + "abc1", nil},
		"digits":             {[]string{"a", "b"}, "abc1", nil},
	} {
		s := openEmpty(t)
		i := put(t, s, "abc1", c.names...)
		held, err := i.Hold()
		must(t, err)
		if err := s.Remove(c.ref); c.left == nil && !errors.Is(err, ErrInUse) || c.left != nil && err != nil {
			t.Errorf("%s: while it is held: %v", name, err)
		}
		must(t, held.Close())
		if c.left == nil {
			must(t, s.Remove(c.ref))
			checkEmpty(t, s)
			continue
		}
		if i, err := s.Lookup(i.ID); err != nil || !slices.Equal(i.Names, c.left) {
			t.Errorf("%s: left is %+v, %v", name, i, err)
		}
	}
}

func TestPrune(t *testing.T) {
	s := openEmpty(t)
	put(t, s, "abc1", "moves")
	put(t, s, "abc2", "moves")
	never, used := put(t, s, "abc3"), put(t, s, "abc4")
	held, err := used.Hold()
	must(t, err)
	ids, err := s.Prune()
	must(t, err)
	slices.Sort(ids)
	if want := []string{idPrefix + "abc1" + strings.Repeat("0", 60), never.ID}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
	must(t, held.Close())
	if ids, err := s.Prune(); err != nil || !slices.Equal(ids, []string{used.ID}) {
		t.Errorf("what is not in use any more: %v, %v", ids, err)
	}
	if all, err := s.List(); err != nil || len(all) != 1 || all[0].Names[0] != "moves" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestRemoveInUse(t *testing.T) {
	s := openEmpty(t)
	i := put(t, s, "abc1", "one")
	first, err := i.Hold()
	must(t, err)
	second, err := i.Hold()
	must(t, err)
	for _, l := range []*Lease{first, second} {
		if err := s.Remove("one"); !errors.Is(err, ErrInUse) {
			t.Errorf("in use: %v", err)
		}
		if _, err := s.Lookup("one"); err != nil {
			t.Errorf("the image in use: %v", err)
		}
		must(t, l.Close())
	}
	must(t, s.Remove("one"))
	if _, err := i.Hold(); !errors.Is(err, ErrNotFound) {
		t.Errorf("hold what is gone: %v", err)
	}
	checkEmpty(t, s)
}

// TestHoldRace checks that Hold notices an image that is removed between the open and the lock
// of its lock file.
func TestHoldRace(t *testing.T) {
	s := openEmpty(t)
	i := put(t, s, "abc1")
	path := filepath.Join(i.dir, imageLock)
	f, err := lockNow(path, os.O_RDONLY, unix.LOCK_SH)
	must(t, err)
	defer f.Close()
	if !isAt(f, path) {
		t.Error("the lock is not at its path")
	}
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, nil, 0o644))
	if isAt(f, path) {
		t.Error("a new lock was taken for the old one")
	}
}

// TestCommitFails checks that a commit that fails late leaves an image without the name, which Prune removes.
func TestCommitFails(t *testing.T) {
	s := openEmpty(t)
	put(t, s, "abc1", "one")
	w, err := s.makeTemp(t.Context())
	must(t, err)
	defer w.Close()
	must(t, os.MkdirAll(w.path("image/rootfs"), 0o755))
	id := idPrefix + strings.Repeat("d", 64)
	if _, err := s.commit(t.Context(), w, &Image{ID: id, Created: time.Now()}, []string{"no/folder"}); err == nil {
		t.Error("commit succeeded")
	}
	if ids, err := s.Prune(); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("pruned %v, %v", ids, err)
	}
	if _, err := s.Lookup("one"); err != nil {
		t.Error(err)
	}
}

// TestDanglingNameIsDropped checks that a name from a killed removal is not a name of an image that
// is stored later.
func TestDanglingNameIsDropped(t *testing.T) {
	s := openEmpty(t)
	must(t, s.setName("gone", "abc1"+strings.Repeat("0", 60)))
	if i := put(t, s, "abc1", "one"); !slices.Equal(i.Names, []string{"one"}) {
		t.Errorf("names %v", i.Names)
	}
	if i, err := s.Lookup("gone"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestDanglingName(t *testing.T) {
	s := openEmpty(t)
	must(t, s.setName("gone", strings.Repeat("a", 64)))
	if _, err := s.Lookup("gone"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if images, err := s.List(); err != nil || len(images) != 0 {
		t.Errorf("images %v, %v", images, err)
	}
}

// TestLookupMakesNoStore checks that reading from a missing store that was named does not make it.
func TestLookupMakesNoStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mistyped")
	s, err := Open(dir)
	must(t, err)
	_, lookup := s.Lookup("one")
	_, list := s.List()
	_, ensure := s.Ensure(t.Context(), "", BuildOptions{})
	_, snapshots := s.Snapshots()
	_, prune := s.Prune()
	for what, err := range map[string]error{"Lookup": lookup, "List": list, "Ensure": ensure, "Snapshots": snapshots, "Prune": prune, "Remove": s.Remove("one")} {
		if !errors.Is(err, ErrNoStore) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store exists: %v", err)
	}
}
