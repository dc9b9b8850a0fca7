package vfs

import (
	"fmt"
	"strings"
)

// Folders that belong to the guest in every tree.
const (
	Home      Path = "/home/node"
	Workspace Path = "/workspace" // the working directory of runs
)

// reserved lists the trees that are not part of the overlay, in which no folder can be made.
var reserved = []Path{"/proc", "/dev", "/sys"}

// CheckCwd returns an error if cwd cannot belong to a guest.
func CheckCwd(cwd Path) error {
	for _, r := range reserved {
		if cwd == r || strings.HasPrefix(string(cwd), string(r)+"/") {
			return fmt.Errorf("path %q: %s cannot hold files of a guest", cwd, r)
		}
	}
	return nil
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
