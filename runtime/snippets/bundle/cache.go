package bundle

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// keepTime is how long a set stays after its last use: a sandbox may be starting with it.
	keepTime = 10 * time.Minute

	// maxCacheBytes is the size above which the cache drops the sets that were not used for the longest time.
	maxCacheBytes = 512 << 20

	// abandonedTime is the age at which a temporary folder belongs to a process that died.
	abandonedTime = time.Hour

	temporary = ".new-"
)

// A cache keeps sets in a folder. Folders of sets have the hash of their content as name,
// never change, and contain only what sandboxes may read:
//
//	sets/HASH/…          a set
//	sets/.new-…          an incomplete set
//	manifests/KEY.json   the last set of a key
//
// The modification time of a set's folder is the time of its last use.
type cache struct {
	sets, manifests string
	maxBytes        int64
}

func openCache(folder string) (*cache, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	c := &cache{filepath.Join(folder, "sets"), filepath.Join(folder, "manifests"), maxCacheBytes}
	if err := errors.Join(os.MkdirAll(c.manifests, 0o700), os.MkdirAll(c.sets, 0o755)); err != nil {
		return nil, err
	}
	return c, os.Chmod(c.sets, 0o755) // despite the umask
}

func (c *cache) manifest(key string) string { return filepath.Join(c.manifests, key+".json") }

// load returns the last set of a key.
func (c *cache) load(key string) (*set, error) {
	text, err := os.ReadFile(c.manifest(key))
	if err != nil {
		return nil, err
	}
	s := new(set)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	if len(s.Dir) != dirLength || strings.Trim(s.Dir, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%s: invalid", c.manifest(key))
	}
	return s, nil
}

// touch records the use of a set. It fails if the set was removed.
func (c *cache) touch(s *set) error {
	if s.Dir == "" {
		return nil
	}
	name := filepath.Join(c.sets, s.Dir)
	now := time.Now()
	return os.Chtimes(name, now, now)
}

// create returns a new folder for a set.
func (c *cache) create() (string, error) {
	name, err := os.MkdirTemp(c.sets, temporary)
	if err != nil {
		return "", err
	}
	return name, os.Chmod(name, 0o755)
}

func writeFiles(folder string, files map[string][]byte) error {
	for name, content := range files {
		name = filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(name, content, 0o644), os.Chmod(name, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// publish renames the folder of a set to its hash, writes the manifest, and evicts old sets.
func (c *cache) publish(key, folder string, files map[string][]byte, s *set) error {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(h, "%q %d\n%s\n", name, len(files[name]), files[name])
	}
	s.Dir = hex.EncodeToString(h.Sum(nil)[:dirLength/2])
	err := os.Rename(folder, filepath.Join(c.sets, s.Dir))
	if err != nil && c.touch(s) != nil { // the same set exists unless touch fails
		return err
	}
	if err != nil {
		_ = os.RemoveAll(folder)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	name := filepath.Join(c.manifests, temporary+rand.Text())
	if err = os.WriteFile(name, text, 0o600); err == nil {
		err = os.Rename(name, c.manifest(key))
	}
	if err != nil {
		_ = os.Remove(name)
		return err
	}
	c.evict(time.Now())
	return nil
}

// evict removes the least recently used sets and manifests beyond the size of the cache, and abandoned temporary
// ones. It is best effort: several processes may evict concurrently.
func (c *cache) evict(now time.Time) {
	evict(c.sets, c.maxBytes, now)
	evict(c.manifests, c.maxBytes/16, now)
}

func evict(folder string, maxBytes int64, now time.Time) {
	list := entriesOf(folder)
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for _, e := range list { // the latest first
		name, age := filepath.Join(folder, e.Name()), now.Sub(e.ModTime())
		if strings.HasPrefix(e.Name(), temporary) {
			if age > abandonedTime {
				_ = os.RemoveAll(name)
			}
			continue
		}
		for _, f := range append(entriesOf(name), e) {
			total += f.Size()
		}
		if total > maxBytes && age > keepTime {
			_ = os.RemoveAll(name)
		}
	}
}

// entriesOf returns the readable entries of a folder.
func entriesOf(folder string) (list []fs.FileInfo) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			list = append(list, info)
		}
	}
	return list
}
