package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"gaol/internal/snippet"
)

// PackagesOptions are the options of [NewPackages].
type PackagesOptions struct {
	// Folder is a folder with installed packages, such as node_modules, or a folder that
	// contains a node_modules.
	Folder string

	// Cache is the folder for bundles. It is created if missing, and only its owner may write
	// to it. Several processes may share it.
	Cache string

	// Names returns the names of the exports object of a module in CommonJS, by running
	// [NamesProgram] in a sandbox. module is its path below Dir. For a module that throws, Names
	// returns nil. If Names is nil or returns nil, snippets may import any name, and missing names
	// are undefined.
	Names func(ctx context.Context, module string) ([]string, error)
}

const (
	// maxMemory bounds the sets, and 32 times as many specifiers, that are kept in memory.
	maxMemory = 128

	// maxImports bounds the packages of one snippet.
	maxImports = 64

	// checkInterval is how long a set is used without checking the files that it was made of.
	checkInterval = time.Second
)

// Packages are bundles of the packages in a folder. Its methods are safe for concurrent use.
type Packages struct {
	folder   string // without symbolic links
	cache    *cache
	names    func(ctx context.Context, module string) ([]string, error)
	building *semaphore.Weighted // sets are built one at a time

	maxBuildTime time.Duration // of a set

	mu    sync.Mutex
	sets  map[string]*set  // by key
	known map[string]Entry // by specifier, of the last set that has it
}

// NewPackages returns the packages of a folder. It creates the cache folder.
func NewPackages(o PackagesOptions) (*Packages, error) {
	folder, err := realFolder(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("bundle: packages: %w", err)
	}
	c, err := openCache(o.Cache)
	if err != nil {
		return nil, fmt.Errorf("bundle: packages: %w", err)
	}
	return &Packages{
		folder: folder, cache: c, names: o.Names, building: semaphore.NewWeighted(1), maxBuildTime: time.Minute,
		sets: make(map[string]*set), known: make(map[string]Entry),
	}, nil
}

// realFolder returns the path of a folder without symbolic links, as esbuild reports the
// files in it.
func realFolder(name string) (string, error) {
	f, err := os.OpenFile(name, unix.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// Dir returns the folder of the host that sandboxes mount, read-only, at [Options].Mount.
// Files in it never change.
func (p *Packages) Dir() string { return p.cache.sets }

// mentioned returns the known entries whose specifiers files may import.
func (p *Packages) mentioned(files []File) map[string]Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]Entry{}
	for specifier, e := range p.known {
		if slices.ContainsFunc(files, func(f File) bool { return strings.Contains(f.Source, specifier) }) {
			found[specifier] = e
		}
	}
	return found
}

// set returns the set of specifiers, which must be sorted. It is made if it does not exist
// or is out of date. Packages that cannot be imported are entries with a problem.
func (p *Packages) set(ctx context.Context, specifiers []string) (*set, error) {
	if s := p.incomplete(specifiers); s != nil {
		return s, nil
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%q\n%v\n%s", format, esbuildVersion(), p.folder, p.names != nil, strings.Join(specifiers, "\n"))
	key := hex.EncodeToString(h.Sum(nil)[:dirLength/2])
	if s := p.remembered(key); s != nil && p.valid(s) {
		return s, nil
	}
	if p.building.Acquire(ctx, 1) != nil {
		return nil, fmt.Errorf("bundle: %w", context.Cause(ctx))
	}
	defer p.building.Release(1)
	if s := p.remembered(key); s != nil && p.valid(s) {
		return s, nil // made in the meantime
	}
	s, err := p.cache.load(key)
	if err != nil || !p.valid(s) {
		if s, err = p.make(ctx, key, specifiers); err != nil {
			return nil, err
		}
	}
	p.remember(key, s)
	return s, nil
}

// incomplete returns a set with problems if packages are missing, without running esbuild.
func (p *Packages) incomplete(specifiers []string) *set {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &set{Entries: make(map[string]Entry)}
	bad := false
	for i, specifier := range specifiers {
		e := p.known[specifier]
		switch {
		case !p.hasFile(snippet.PackageOf(specifier)):
			e = Entry{Problem: fmt.Sprintf(notFound, specifier)}
			bad = true
		case i >= maxImports:
			e = Entry{Problem: fmt.Sprintf("more than %d packages are imported", maxImports)}
			bad = true
		}
		s.Entries[specifier] = e
	}
	if !bad {
		return nil
	}
	return s
}

// roots returns the folders that contain packages.
func (p *Packages) roots() []string {
	return []string{p.folder, filepath.Join(p.folder, "node_modules")}
}

func (p *Packages) hasFile(name string) bool {
	return slices.ContainsFunc(p.roots(), func(root string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	})
}

func (p *Packages) remembered(key string) *set {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sets[key]
}

// remember keeps a set in memory.
func (p *Packages) remember(key string, s *set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known)+len(s.Entries) > 32*maxMemory {
		clear(p.known)
	}
	maps.Copy(p.known, s.Entries)
	if len(p.sets) >= maxMemory {
		clear(p.sets) // they are still in the cache
	}
	p.sets[key] = s
}

// A set is a bundle of packages.
type set struct {
	Dir     string           `json:"dir"` // its folder in the cache; empty if an entry has a problem
	Entries map[string]Entry `json:"entries"`
	Files   map[string]stamp `json:"files"` // its inputs, and other files that change with them

	mu      sync.Mutex
	checked time.Time
}

// A stamp identifies the content of a file without reading it. npm sets the same
// modification time for all files, so the time of the last change of the inode counts, too.
type stamp struct {
	Inode   uint64 `json:"inode"` // 0: the file does not exist
	Size    int64  `json:"size"`
	Mtime   int64  `json:"mtime"` // in ns, as
	Ctime   int64  `json:"ctime"`
	Invalid bool   `json:"invalid,omitempty"` // the file changed while it was read
}

func stampOf(file string) stamp {
	var st unix.Stat_t
	if err := unix.Lstat(file, &st); err != nil {
		return stamp{}
	}
	return stamp{Inode: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}
}

// valid reports whether the files of a set are unchanged, and records its use. It checks them at most once in
// checkInterval.
func (p *Packages) valid(s *set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.checked) < checkInterval {
		return true
	}
	for file, want := range s.Files {
		if stampOf(file) != want {
			return false
		}
	}
	// Without a folder, packages are missing, which may have been installed.
	if s.Dir == "" && !s.checked.IsZero() || p.cache.touch(s) != nil {
		return false
	}
	s.checked = now
	return true
}

// format is the version of the sets' format. Increment it to rebuild all sets.
const format = "1"

// esbuildVersion returns the version of esbuild in this program.
var esbuildVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/evanw/esbuild" {
			return m.Version
		}
	}
	return ""
})
