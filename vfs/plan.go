package vfs

import "fmt"

// The folders that belong to the guest in every tree.
const (
	Home      Path = "/home/node"
	Workspace Path = "/workspace" // the working directory of runs
)

// Plan is what a tree is made of.
type Plan struct {
	Image  string // host folder with the image's root
	Dirs   []Path // the guest's own folders
	Disk   int64  // bytes that may be written
	Inodes int64  // files and folders that may be made
}

// reserved are trees that are not part of an overlay, where a folder can't be made.
var reserved = []Path{"/proc", "/dev", "/sys"}

// NewPlan plans the tree of an image with cwd as one of the guest's folders.
func NewPlan(image string, cwd Path, disk, inodes int64) (Plan, error) {
	for _, r := range reserved {
		if cwd == r || len(cwd) > len(r) && cwd[:len(r)+1] == r+"/" {
			return Plan{}, fmt.Errorf("path %q: %s holds no files of a guest", cwd, r)
		}
	}
	return Plan{Image: image, Dirs: Own(cwd), Disk: disk, Inodes: inodes}, nil
}

// Own are the folders that belong to the guest in a tree with that working directory.
func Own(cwd Path) []Path {
	dirs := []Path{Home, Workspace}
	if cwd != Home && cwd != Workspace && cwd != "/" {
		dirs = append(dirs, cwd)
	}
	return dirs
}

// Shared are the folders of every tree that anyone may write to.
func Shared() []Path { return []Path{"/tmp", "/var/tmp", "/dev/shm"} }
