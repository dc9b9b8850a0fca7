package examplecheck

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a folder of packages whose content is hashed.
const (
	maxModuleFiles = 500_000
	maxModuleBytes = 4 << 30
)

var errManyModules = errors.New("too many files")

// ModulesDigest returns a digest of the content of a folder of packages. It is "" if the folder
// is too large. If nothing has changed according to sizes and times, it is read from the folder
// cache.
func ModulesDigest(dir, cache string) (string, error) { return modulesDigest(dir, cache, settled) }

// settled is how long a file must not have changed: a file that changes again in the same tick of
// the clock keeps its time.
const settled = 2 * time.Second

func modulesDigest(dir, cache string, settled time.Duration) (string, error) {
	dir, err := filepath.EvalSymlinks(dir) //nolint:forbidigo // the caller's own folder
	if err != nil {
		return "", err
	}
	m := modules{dir: dir, states: sha256.New()}
	if err := filepath.WalkDir(dir, m.add); err != nil {
		if errors.Is(err, errManyModules) {
			return "", nil
		}
		return "", err
	}
	root, err := openCache(cache)
	if err != nil {
		return m.digest() // the cache only saves time
	}
	defer func() { _ = root.Close() }()
	known := path.Join("modules", hex.EncodeToString(m.states.Sum(nil)))
	if text, err := readRegular(root, known, 2*sha256.Size); err == nil && len(text) == 2*sha256.Size {
		return string(text), nil
	}
	digest, err := m.digest()
	if err == nil && time.Since(m.newest) > settled {
		_ = writeWhole(root, known, []byte(digest), 0o600) // best effort
	}
	return digest, err
}

// modules are the files of a folder of packages. No link is followed: a Runner bundles only
// files below the folder.
type modules struct {
	dir    string
	states hash.Hash // of names, sizes and times
	files  []moduleFile
	bytes  int64
	newest time.Time
}

// moduleFile is a file or a link of a package.
type moduleFile struct {
	path, name string // name: for the digest
	link       string // its target, if it is a link
}

// add adds a file. It is a fs.WalkDirFunc.
func (m *modules) add(p string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache") && p != m.dir:
		return fs.SkipDir
	case d.IsDir():
		return nil
	case len(m.files) == maxModuleFiles:
		return errManyModules
	}
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: p, Err: err}
	}
	if m.bytes += st.Size; m.bytes > maxModuleBytes {
		return errManyModules
	}
	if changed := time.Unix(st.Ctim.Unix()); changed.After(m.newest) {
		m.newest = changed
	}
	fmt.Fprintf(m.states, "%q %o %d %d %d %d\n", p, st.Mode, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	f := moduleFile{path: p}
	switch f.name, err = filepath.Rel(m.dir, p); {
	case err != nil:
		return err
	case d.Type() == fs.ModeSymlink:
		f.link, err = os.Readlink(p)
	case !d.Type().IsRegular():
		return nil
	}
	m.files = append(m.files, f)
	return err
}

// digest hashes names and content.
func (m *modules) digest() (string, error) {
	all := sha256.New()
	for _, f := range m.files {
		fmt.Fprintf(all, "%q %q\n", f.name, f.link)
		if f.link != "" {
			continue
		}
		sum, err := fileDigest(f.path)
		if err != nil {
			return "", err
		}
		all.Write(sum)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

func fileDigest(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h := sha256.New()
	_, err = io.Copy(h, io.LimitReader(file, maxModuleBytes))
	return h.Sum(nil), err
}
