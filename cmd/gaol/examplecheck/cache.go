package examplecheck

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"gaol/internal/strictjson"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// Cache has outputs of examples that passed, in files of a folder. A nil Cache is empty and
// stores nothing.
type Cache struct {
	root *os.Root // of its folder
	key  Key
}

// Key is everything that the output of an example depends on, apart from the example.
type Key struct {
	Format  int    // of an entry
	Version string // of gaol
	Image   string // its id
	Adapter snippets.Adapter
	NoLint  bool
	Rules   *lint.Rules // nil: the adapter's rules
	Modules string      // a digest of the packages that examples may import
	Timeout time.Duration

	Isolation string // its name
}

// cacheFormat changes with the meaning of a Key, or of an entry.
const cacheFormat = 1

// Limits of the cache.
const (
	maxEntry  = 4 << 20             // bytes
	unusedFor = 30 * 24 * time.Hour // after which entries are removed
	trimEvery = 24 * time.Hour
)

// NewCache returns the cache in a folder, which is created. It is best effort: without a folder, it
// returns nil.
func NewCache(dir string, k Key) *Cache {
	root, err := openCache(dir)
	if err != nil {
		return nil
	}
	k.Format = cacheFormat
	return &Cache{root, k}
}

// openCache opens the folder of a cache. A missing one is created.
func openCache(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// path returns the file for an example, in the folder.
func (c *Cache) path(files []snippets.File) string {
	text, err := json.Marshal(struct {
		Key   Key
		Files []snippets.File
	}{c.key, files})
	if err != nil {
		panic(err) // strings and numbers have JSON
	}
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:])
	return path.Join(name[:2], name[2:]+".json")
}

// load sets the output of a result from the cache.
func (c *Cache) load(r *Result) bool {
	if c == nil {
		return false
	}
	p := c.path(r.Files)
	var out snippets.Output
	if text, err := readRegular(c.root, p, maxEntry); err != nil || decode(text, &out) != nil {
		return false
	}
	if info, err := c.root.Stat(p); err == nil && time.Since(info.ModTime()) > trimEvery {
		now := time.Now()
		_ = c.root.Chtimes(p, now, now) // keeps it
	}
	r.Output, r.Cached = &out, true
	return true
}

// decode decodes an entry that has all fields of an output.
func decode(text []byte, out *snippets.Output) error {
	err := strictjson.Decode(text, out)
	if err == nil && (out.Logs == nil || out.Errors == nil || out.Facts == nil || out.Derived == nil) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// store keeps the output of an example that passed: other outputs may be due to the machine. It
// is best effort: a check does not fail for its cache.
func (c *Cache) store(r *Result) {
	if c == nil || r.Cached || r.Output == nil || r.Status == Failed {
		return
	}
	if text, err := json.Marshal(r.Output); err == nil && len(text) <= maxEntry {
		_ = writeWhole(c.root, c.path(r.Files), text, 0o600)
	}
}

// Trim removes entries that were not used for long. It does so once a day.
func (c *Cache) Trim() {
	if c == nil {
		return
	}
	const mark = "trimmed"
	if info, err := c.root.Stat(mark); err == nil && time.Since(info.ModTime()) < trimEvery {
		return
	}
	if writeWhole(c.root, mark, nil, 0o600) != nil {
		return
	}
	_ = fs.WalkDir(c.root.FS(), ".", func(p string, d fs.DirEntry, err error) error { // best effort
		if err != nil || !d.Type().IsRegular() || !strings.Contains(p, "/") {
			return nil
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > unusedFor {
			_ = c.root.Remove(p)
		}
		return nil
	})
}

// writeWhole replaces a file as a whole, and makes its folder. It follows no symbolic link out of root.
func writeWhole(root *os.Root, p string, text []byte, mode os.FileMode) error {
	if err := root.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	temporary := path.Join(path.Dir(p), "."+rand.Text()+".tmp")
	err := root.WriteFile(temporary, text, mode)
	if err == nil {
		err = root.Rename(temporary, p)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}
