package vfs

import "fmt"

// Folders that belong to the guest in every tree.
const (
	Home      Path = "/home/node"
	Workspace Path = "/workspace" // the working directory of runs
)

// Plan describes a tree.
type Plan struct {
	Image  string // host folder of the image's root
	Dirs   []Path // the guest's own folders
	Disk   int64  // bytes that may be written
	Inodes int64  // files and folders that may be created
}

// reserved lists the trees that are not part of the overlay, in which no folder can be made.
var reserved = []Path{"/proc", "/dev", "/sys"}

// NewPlan returns the plan of an image's tree, in which cwd belongs to the guest.
func NewPlan(image string, cwd Path, disk, inodes int64) (Plan, error) {
	for _, r := range reserved {
		if cwd == r || len(cwd) > len(r) && cwd[:len(r)+1] == r+"/" {
			return Plan{}, fmt.Errorf("path %q: %s cannot hold files of a guest", cwd, r)
		}
	}
	return Plan{Image: image, Dirs: Own(cwd), Disk: disk, Inodes: inodes}, nil
}

// Own returns the folders that belong to the guest in a tree with the working directory cwd.
func Own(cwd Path) []Path {
	dirs := []Path{Home, Workspace}
	if cwd != Home && cwd != Workspace && cwd != "/" {
		dirs = append(dirs, cwd)
	}
	return dirs
}

// Shared returns the folders of every tree that everyone may write to.
func Shared() []Path { return []Path{"/tmp", "/var/tmp", "/dev/shm"} }
