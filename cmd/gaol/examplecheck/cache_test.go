package examplecheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// An example that passed does not run again, but a failed one does. A changed example, or
// anything else in the key, runs it again.
func TestCache(t *testing.T) {
	dir, cacheDir := t.TempDir(), t.TempDir()
	page := fenced("ts run", "log a\nfacts {\"n\":1}") + fenced("ts run", "error e") + fenced("ts run error", "error e2")
	base := Key{Version: "1", Image: "i", Adapter: snippets.Adapter{Name: "none", Code: "x"}, Timeout: time.Second}
	try := func(k Key, page string) (ran int32, r *Report) {
		f := &fake{}
		r = check(t, dir, page, Options{Open: f.open, Cache: NewCache(cacheDir, k)})
		if ran = f.ran.Load(); ran == 0 && f.opened.Load() > 0 {
			t.Error("a runner was opened for nothing")
		}
		return ran, r
	}
	if ran, _ := try(base, page); ran != 3 {
		t.Errorf("at first %d examples ran, want 3", ran)
	}
	ran, r := try(base, page)
	if ran != 1 || r.Cached != 2 || string(r.Results[0].Output.Facts) != `{"n":1}` || r.Results[0].Output.Logs[0] != "[log] a" {
		t.Errorf("then %d examples ran; %+v", ran, r.Results[0].Output)
	}
	if ran, _ := try(base, strings.Replace(page, "log a", "log b", 1)); ran != 2 {
		t.Errorf("with a changed example %d ran, want 2", ran)
	}
	if ran, _ := try(base, fenced("ts run", "log a\nfacts {\"n\":1}")); ran != 0 {
		t.Errorf("without the failing example %d ran", ran)
	}
	for name, change := range map[string]func(*Key){
		"version": func(k *Key) { k.Version = "2" }, "image": func(k *Key) { k.Image = "j" },
		"adapter": func(k *Key) { k.Adapter.Code = "y" }, "lint": func(k *Key) { k.NoLint = true },
		"rules": func(k *Key) { k.Rules = &lint.Rules{} }, "names": func(k *Key) { k.Rules = &lint.Rules{Names: map[string]string{"a": "b"}} },
		"modules": func(k *Key) { k.Modules = "m" }, "timeout": func(k *Key) { k.Timeout++ },
	} {
		k := base
		if change(&k); k == base {
			t.Fatal(name)
		}
		if ran, _ := try(k, page); ran != 3 {
			t.Errorf("with another %s %d examples ran, want 3", name, ran)
		}
	}
}

// Entries that someone else has written or cut are not used.
func TestCacheDamaged(t *testing.T) {
	dir, cacheDir := t.TempDir(), t.TempDir()
	run := func() int32 {
		f := &fake{}
		check(t, dir, fenced("ts run", "log a"), Options{Open: f.open, Cache: NewCache(cacheDir, Key{})})
		return f.ran.Load()
	}
	if run() != 1 || run() != 0 {
		t.Fatal("the cache does not work")
	}
	entries, err := filepath.Glob(cacheDir + "/*/*.json")
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, err := os.Stat(entries[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, text := range []string{"", "{}", `{"logs":[],"facts":{},"derived":{},"errors":null}`, `{"logs":[],"facts":{},"derived":{},"errors":[],"x":1}`, strings.Repeat(" ", maxEntry+1)} {
		if err := os.WriteFile(entries[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if run() != 1 {
			t.Errorf("the entry %.60q was used", text)
		}
	}
}

func TestTrim(t *testing.T) {
	dir := t.TempDir()
	c := NewCache(dir, Key{})
	long := time.Now().Add(-unusedFor - time.Hour)
	for name, changed := range map[string]time.Time{"aa/old.json": long, "aa/new.json": time.Now(), "modules/old": long} {
		if err := writeWhole(c.root, name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	left := func() []string {
		files, err := filepath.Glob(dir + "/*/*")
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if err := writeWhole(c.root, "trimmed", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Trim(); len(left()) != 3 {
		t.Errorf("trimmed twice a day: %v", left())
	}
	if err := os.Chtimes(filepath.Join(dir, "trimmed"), long, long); err != nil {
		t.Fatal(err)
	}
	c.Trim()
	if diff := cmp.Diff([]string{filepath.Join(dir, "aa/new.json")}, left()); diff != "" {
		t.Error(diff)
	}
	(*Cache)(nil).Trim()
}

func TestModulesDigest(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	put := func(name, text string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		d, err := ModulesDigest(filepath.Join(dir, "node_modules"), cache)
		if err != nil || len(d) != 64 {
			t.Fatalf("%q, %v", d, err)
		}
		return d
	}
	put("node_modules/a/index.js", "1")
	put("packages/b/index.js", "1")
	if err := os.Symlink("../packages/b", filepath.Join(dir, "node_modules/b")); err != nil {
		t.Fatal(err)
	}
	first := digest()
	if digest() != first {
		t.Error("the digest is another one each time")
	}
	put("node_modules/a/index.js", "1") // with another time
	if digest() != first {
		t.Error("the digest depends on times")
	}
	for name, text := range map[string]string{"node_modules/a/index.js": "2", "node_modules/c.js": ""} {
		before := digest()
		put(name, text)
		if digest() == before {
			t.Errorf("the digest ignores %s", name)
		}
	}
	before := digest()
	put("packages/b/index.js", "2") // no snippet can import it
	if digest() != before {
		t.Error("the digest follows a link out of the folder")
	}
	if _, err := ModulesDigest(filepath.Join(dir, "none"), cache); err == nil {
		t.Error("a folder that does not exist has a digest")
	}
}

// A folder that has not changed for a while is not read again: its digest is in the cache.
func TestModulesDigestIsKept(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.js"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		settled time.Duration
		kept    int
	}{{time.Hour, 0}, {-time.Hour, 1}} {
		if _, err := modulesDigest(dir, cache, tc.settled); err != nil {
			t.Fatal(err)
		}
		kept, err := filepath.Glob(cache + "/modules/*")
		if err != nil || len(kept) != tc.kept {
			t.Fatalf("%v: %v, %v", tc.settled, kept, err)
		}
		for _, p := range kept {
			if err := os.WriteFile(p, []byte(strings.Repeat("a", 64)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d, err := ModulesDigest(dir, cache); d != strings.Repeat("a", 64) || err != nil {
		t.Errorf("%q, %v", d, err)
	}
}
