package enforce

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gaol/runtime/internal/sandbox"

	"gaol/policy"
	"gaol/vfs"
)

// NodePath is where the images that gaol builds have Node.
const NodePath = "/usr/local/bin/node"

// Tree describes those parts of a runtime's file tree that permissions depend on.
type Tree struct {
	Image     string // host path of the image's root; "" if it is not known yet
	Cwd       vfs.Path
	Node      string   // guest path of Node; "" means NodePath
	Libraries []string // folders with libraries of an imported image, in addition to the usual ones
	Writable  []string // targets of mounts that the guest may write to
	HostPorts []uint16
	Program   string // folder of the run's program; "" means that of all programs
}

// NodePath returns the guest path of Node.
func (t Tree) NodePath() string { return cmp.Or(t.Node, NodePath) }

// World describes the tree to package policy. A writable mount counts as one of the guest's own folders.
func (t Tree) World() policy.World {
	w := policy.World{Own: vfs.Strings(vfs.Own(t.Cwd)), Shared: vfs.Strings(vfs.Shared()), Needed: t.needed(), HostPorts: t.HostPorts}
	for _, target := range t.Writable {
		if !slices.Contains(w.Own, target) {
			w.Own = append(w.Own, target)
		}
	}
	return w
}

// needed returns the places that Node needs, where the image has them.
func (t Tree) needed() []policy.Need {
	list := slices.Clone(needed)
	for n := range list {
		switch list[n].Path {
		case NodePath:
			list[n].Path = t.NodePath()
		case sandbox.ProgramDir:
			list[n].Path = cmp.Or(t.Program, sandbox.ProgramDir)
		}
		if slices.Contains(t.Libraries, list[n].Path) {
			list[n] = policy.Need{Path: list[n].Path, Tree: true, Operations: load, Loader: true, Reason: "libraries of an image whose /usr is not merged"}
		}
	}
	return list
}

var (
	read      = []policy.Operation{"read"}
	readWrite = []policy.Operation{"read", "write"}
	list      = []policy.Operation{"read", "readdir"}
	load      = []policy.Operation{"read", "execute"}
	readLink  = []policy.Operation{"readlink"}
)

// needed lists the places that Node, or what starts it, opens in every program.
var needed = []policy.Need{
	{Path: NodePath, Operations: load, Reason: "Node itself, which a launcher may have to execute"},
	{Path: "/usr/libexec/gaol", Tree: true, Operations: read, Reason: "gaol's own JavaScript, which a worker's Node reads"},
	{Path: sandbox.ProgramDir, Tree: true, Operations: read, Reason: "the run's program"},
	{Path: "/lib", Operations: readLink, Reason: "programs name their loader by it"},
	{Path: "/lib64", Operations: readLink, Reason: "as /lib"},
	{Path: "/usr/lib", Tree: true, Operations: load, Loader: true, Reason: "libraries, and the loader on arm64"},
	{Path: "/usr/lib64", Tree: true, Operations: load, Loader: true, Reason: "the loader on amd64"},
	{Path: "/etc/ssl/openssl.cnf", Operations: read, Reason: "OpenSSL does not start if it cannot read the file"},
	{Path: "/proc", Tree: true, Operations: list, Reason: "process.memoryUsage, os.cpus and the like; scope process governs what /proc shows"},
	{Path: "/sys/fs/cgroup", Tree: true, Operations: list, Reason: "process.constrainedMemory and os.availableParallelism: the limits of the runs"},
	{Path: "/dev/null", Operations: readWrite, Reason: "Node opens it as it starts, and for children without standard input"},
	{Path: "/dev/zero", Operations: readWrite, Reason: "as harmless as /dev/null"},
	{Path: "/dev/full", Operations: readWrite, Reason: "as harmless as /dev/null"},
	{Path: "/dev/random", Operations: readWrite, Reason: "keys, where getrandom is not used"},
	{Path: "/dev/urandom", Operations: readWrite, Reason: "as /dev/random"},
	{Path: "/dev/tty", Operations: readWrite, Reason: "the run's terminal, if it has one"},
	{Path: "/dev/pts", Tree: true, Operations: readWrite, Reason: "the run's own pseudo-terminals"},
	{Path: "/dev/ptmx", Operations: readLink, Reason: "as /dev/pts"},
	{Path: "/dev/fd", Operations: readLink, Reason: "leads to the process's own open files"},
	{Path: "/dev/stdin", Operations: readLink, Reason: "as /dev/fd"},
	{Path: "/dev/stdout", Operations: readLink, Reason: "as /dev/fd"},
	{Path: "/dev/stderr", Operations: readLink, Reason: "as /dev/fd"},
}

// CheckPlaces refuses rules whose path is a symbolic link in the image, or whose form does
// not match the kind of file. The kernel enforces rules on files, not paths: a rule for the link
// /bin/sh would not apply to /usr/bin/sh.
func (t Tree) CheckPlaces(p policy.Permissions) error {
	return p.Refuse(func(at policy.Place) (why, nearest string) { return misplaced(t.Image, at) })
}

// misplaced returns why a place does not match the image's file at its path, and the nearest place
// that does. It returns "" if they match or the file is missing. It follows no link.
func misplaced(image string, p policy.Place) (why, nearest string) {
	at := "/"
	for name := range strings.SplitSeq(p.Path[1:], "/") {
		at = path.Join(at, name)
		info, err := os.Lstat(filepath.Join(image, at))
		switch isLast := at == p.Path; {
		case err != nil:
			return "", ""
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(filepath.Join(image, at))
			if err != nil {
				return "", ""
			}
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(at), target)
			}
			real := policy.Place{Path: path.Join(target, p.Path[len(at):]), Tree: p.Tree}
			return at + " is a symbolic link, and the kernel knows its target only", real.String()
		case info.IsDir() && isLast && !p.Tree:
			return "it is a folder, and a path without /** is one file", p.Path + "/**"
		case !info.IsDir() && (!isLast || p.Tree):
			return at + " is not a folder", at
		}
	}
	return "", ""
}
