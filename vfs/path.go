package vfs

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Path is an absolute, clean path in the guest's tree. Only [ParsePath] converts
// text to a Path.
type Path string

// maxPath is Linux's PATH_MAX, including the final NUL.
const maxPath = 4096

var errPath = errors.New("not an absolute, clean path")

// ParsePath accepts an absolute path without ".", "..", doubled or trailing
// slashes and NUL bytes.
func ParsePath(s string) (Path, error) {
	if !path.IsAbs(s) || path.Clean(s) != s || strings.ContainsRune(s, 0) || len(s) >= maxPath {
		return "", fmt.Errorf("path %q: %w", s, errPath)
	}
	return Path(s), nil
}

// Join returns the path of the entry name in the folder p.
func (p Path) Join(name string) Path { return Path(path.Join(string(p), name)) }

// Strings returns paths as strings.
func Strings(paths []Path) (list []string) {
	for _, p := range paths {
		list = append(list, string(p))
	}
	return list
}

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
