package cgroup

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// otherHierarchies returns the names of the hierarchies at root that are not in controllersV1:
// other v1 controllers, systemd's hierarchy and, often, a v2 hierarchy.
func otherHierarchies(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var own []os.FileInfo // compared by inode: cpu may be a link to cpu,cpuacct
	for _, c := range controllersV1 {
		if info, err := os.Stat(filepath.Join(root, c)); err == nil {
			own = append(own, info)
		}
	}
	var others []string
	for _, e := range entries {
		info, err := e.Info()
		isOwn := func(o os.FileInfo) bool { return os.SameFile(o, info) }
		if err == nil && e.IsDir() && isCgroup(filepath.Join(root, e.Name())) && !slices.ContainsFunc(own, isOwn) {
			others = append(others, e.Name())
		}
	}
	return others, nil
}

func isCgroup(dir string) bool {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	return err == nil && (fs.Type == unix.CGROUP_SUPER_MAGIC || fs.Type == unix.CGROUP2_SUPER_MAGIC)
}
