package jail

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// countFolders kills a run that has too many descriptors of one folder in a mount that is
// copied on write. For each that was read after the folder changed, the kernel keeps all its
// names: some 300 bytes for each of the inodes that the jail may have.
func (w *memoryWatch) countFolders() {
	copies := func(s *Spec) bool {
		return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Access == CopyOnWrite })
	}
	for _, runs := range w.byJail(copies) {
		for _, p := range runs {
			pids, _ := p.group.PIDs() // one that is ending has none
			if mostOfOneFolder(pids) > maxSameFolder {
				p.killForMemory()
			}
		}
	}
}

// mostOfOneFolder counts the descriptors of the folder that the processes have open most
// often. It leaves out processes that end meanwhile.
func mostOfOneFolder(pids []int) (most int) {
	type folder struct{ device, inode uint64 }
	count := map[folder]int{}
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd"
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			var info unix.Stat_t
			if unix.Stat(filepath.Join(dir, e.Name()), &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			f := folder{info.Dev, info.Ino}
			count[f]++
			most = max(most, count[f])
		}
	}
	return most
}
