package vfs

// Folders that belong to the guest in every tree.
const (
	Home      Path = "/home/node"
	Workspace Path = "/workspace" // the working directory of runs
)

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
