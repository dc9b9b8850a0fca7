package vfs

// Folders that belong to the guest in every tree.
const (
	Home      Path = "/home/node"
	Workspace Path = "/workspace" // the working directory of runs
)

// SearchPath is the PATH of runs. It has the folders into which npm install -g, pip and others install programs.
const SearchPath = "/usr/local/bin:/usr/bin:/bin:" + string(Home) + "/.local/bin"

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
