package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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

// key identifies the sets of the same packages.
func (p *Packages) key(specifiers []string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%q\n%v\n%s", format, esbuildVersion(), p.folder, p.names != nil, strings.Join(specifiers, "\n"))
	return hex.EncodeToString(h.Sum(nil)[:dirLength/2])
}

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
