package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// remove removes an image or a name, which must succeed.
func remove(t *testing.T, s *Store, ref string) Removed {
	t.Helper()
	r, err := s.Remove(ref)
	must(t, err)
	return r
}

// pruned returns the ids that Prune has removed, sorted.
func pruned(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	removed, err := s.Prune()
	must(t, err)
	for _, r := range removed {
		ids = append(ids, r.Ref)
	}
	slices.Sort(ids)
	return ids
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
	if _, err := s.Remove("ab"); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("ambiguous: %v", err)
	}
	if r := remove(t, s, "both"); r != (Removed{Ref: "both"}) {
		t.Errorf("a name: %+v", r)
	}
	if i, err := s.Lookup("one"); err != nil || len(i.Names) != 1 {
		t.Errorf("its other name: %+v, %v", i, err)
	}
	remove(t, s, "one")
	for _, name := range []string{"one", "both"} {
		if _, err := s.Remove(name); !errors.Is(err, ErrNotFound) {
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
	must(t, os.WriteFile(filepath.Join(two.Root(), "file"), make([]byte, 1<<20), 0o644))
	if r := remove(t, s, "abd"); r.Ref != two.ID || r.Freed < 1<<20 || r.Freed > 2<<20 {
		t.Errorf("an image of 1 MiB: %+v", r)
	}
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
		if _, err := s.Remove(c.ref); c.left == nil && !errors.Is(err, ErrInUse) || c.left != nil && err != nil {
			t.Errorf("%s: while it is held: %v", name, err)
		}
		must(t, held.Close())
		if c.left == nil {
			remove(t, s, c.ref)
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
	if ids, want := pruned(t, s), []string{idPrefix + "abc1" + strings.Repeat("0", 60), never.ID}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
	must(t, held.Close())
	if ids := pruned(t, s); !slices.Equal(ids, []string{used.ID}) {
		t.Errorf("what is not in use any more: %v", ids)
	}
	if all, err := s.List(); err != nil || len(all) != 1 || all[0].Names[0] != "moves" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestPruneOfBuilds checks which images of builds are outdated.
func TestPruneOfBuilds(t *testing.T) {
	const built = "node24.21.0-23ed74ce174b"
	s := openEmpty(t)
	images := map[string]*Image{
		"no name":          put(t, s, "a1"),
		"an older build":   put(t, s, "a2", built),
		"a newer build":    put(t, s, "a3", "node99.0.0-23ed74ce174b", "node24.21.0-000000000000"),
		"another name":     put(t, s, "a4", "node24.21.0-111111111111", "mine"),
		"a major's name":   put(t, s, "a5", "node22.1.0-111111111111", "node-22"),
		"not quite a hash": put(t, s, "a6", "node24.21.0-23ed74ce174"),
	}
	for n, o := range []BuildOptions{{}, {Minimal: true}} {
		p, err := s.in.plan(o, s.in.pins.Find)
		must(t, err)
		images[p.names[0]] = put(t, s, "b"+strconv.Itoa(n), p.names[0])
	}
	used := images["no name"]
	held, err := used.Hold()
	must(t, err)
	for range 2 { // the second time, nothing is left to remove
		pruned(t, s)
	}
	must(t, held.Close())
	for what, i := range images {
		_, err := s.Lookup(i.ID)
		if gone := errors.Is(err, ErrNotFound); gone != slices.Contains([]string{"an older build", "a newer build"}, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	snapshots, err := s.Snapshots()
	must(t, err)
	must(t, snapshots.makeDirs())
	put(t, snapshots, "c1", built)
	if ids := pruned(t, snapshots); ids != nil {
		t.Errorf("a snapshot with a name like that: %v", ids)
	}
	imported := put(t, s, "c2")
	imported.Imported = &Imported{}
	must(t, imported.writeJSON(filepath.Join(imported.dir, imageFile)))
	must(t, s.setName(built, strings.TrimPrefix(imported.ID, idPrefix)))
	if ids := pruned(t, s); !slices.Equal(ids, []string{used.ID}) {
		t.Errorf("an import with a name like that: %v", ids)
	}
}

func TestTag(t *testing.T) {
	s := openEmpty(t)
	one, two := put(t, s, "abc1", "one", "both"), put(t, s, "abd2", "two")
	for name, from := range map[string]string{"two": "", "both": one.ID, "new": ""} {
		if i, moved, err := s.Tag(t.Context(), "abd", name); err != nil || i.ID != two.ID || !slices.Contains(i.Names, name) || moved != from {
			t.Errorf("%s: %+v, moved from %q, %v", name, i, moved, err)
		}
	}
	for _, bad := range []string{"", "BAD", "../x", "a/b", ".new", strings.Repeat("a", 64), strings.Repeat("n", 129)} {
		if _, _, err := s.Tag(t.Context(), "one", bad); err == nil {
			t.Errorf("%q is set", bad)
		}
	}
	for ref, want := range map[string]error{"nope": ErrNotFound, "ab": ErrAmbiguous} {
		if _, _, err := s.Tag(t.Context(), ref, "x"); !errors.Is(err, want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if i, err := s.Lookup(one.ID); err != nil || !slices.Equal(i.Names, []string{"one"}) {
		t.Errorf("the other image: %+v, %v", i, err)
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
		if _, err := s.Remove("one"); !errors.Is(err, ErrInUse) {
			t.Errorf("in use: %v", err)
		}
		if _, err := s.Lookup("one"); err != nil {
			t.Errorf("the image in use: %v", err)
		}
		must(t, l.Close())
	}
	remove(t, s, "one")
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
	if ids := pruned(t, s); !slices.Equal(ids, []string{id}) {
		t.Errorf("pruned %v", ids)
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
	_, remove := s.Remove("one")
	_, stored := s.Stored(BuildOptions{})
	_, _, tag := s.Tag(t.Context(), "one", "two")
	for what, err := range map[string]error{"Lookup": lookup, "List": list, "Ensure": ensure, "Snapshots": snapshots, "Prune": prune, "Remove": remove,
		"Stored": stored, "Tag": tag} {
		if !errors.Is(err, ErrNoStore) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store exists: %v", err)
	}
}
