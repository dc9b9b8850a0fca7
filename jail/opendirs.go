package jail

import (
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkOpenDirs kills runs that have too many descriptors of one folder in a CopyOnWrite
// mount. For each descriptor that was read after the folder changed, the kernel keeps all
// names of the folder: some 300 bytes for each of the inodes that the jail may have.
func (w *memoryWatch) checkOpenDirs() {
	hasCopies := func(s *Spec) bool {
		return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Access == CopyOnWrite })
	}
	for _, runs := range w.byJail(hasCopies) {
		for _, p := range runs {
			pids, _ := p.group.PIDs() // fails for a run that has ended
			if mostOfOneDir(pids) > maxSameDir {
				p.killForMemory()
			}
		}
	}
}

// mostOfOneDir returns the number of descriptors of the folder that the processes have open
// most often. It skips processes that end meanwhile.
func mostOfOneDir(pids []int) (most int) {
	type folder struct{ device, inode uint64 }
	count := map[folder]int{}
	for _, pid := range pids {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		for _, file := range files {
			var info unix.Stat_t
			if unix.Stat(file, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR {
				f := folder{info.Dev, info.Ino}
				count[f]++
				most = max(most, count[f])
			}
		}
	}
	return most
}
