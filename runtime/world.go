package runtime

import (
	"cmp"
	"slices"

	"gaol/policy"
	"gaol/vfs"
)

// world is what lowering permissions must know of a tree.
func (s *settings) world() policy.World {
	w := policy.World{Own: texts(vfs.Own(s.cwd)), Shared: texts(vfs.Shared()), Cwd: string(s.cwd), Needed: s.needed()}
	for _, m := range s.mounts {
		if m.Access != ReadOnly && !slices.Contains(w.Own, m.Target) {
			w.Own = append(w.Own, m.Target)
		}
	}
	return w
}

// needed are the places that Node needs, where the image has them.
func (s *settings) needed() []policy.Need {
	list := slices.Clone(needed)
	for n := range list {
		if list[n].Path == nodePath {
			list[n].Path = s.nodePath()
		}
		if slices.Contains(s.libraries, list[n].Path) {
			list[n] = policy.Need{Path: list[n].Path, Tree: true, Operations: loadIt, Loader: true, Reason: "libraries, of an image whose /usr is not merged"}
		}
	}
	return list
}

// nodePath is where the image has Node.
func (s *settings) nodePath() string { return cmp.Or(s.node, nodePath) }

func texts(paths []vfs.Path) []string {
	var out []string
	for _, p := range paths {
		out = append(out, string(p))
	}
	return out
}

var (
	readIt = []policy.Operation{"read"}
	useIt  = []policy.Operation{"read", "write"}
	listIt = []policy.Operation{"read", "readdir"}
	loadIt = []policy.Operation{"read", "execute"}
	seeIt  = []policy.Operation{"readlink"}
)

// needed are the places that Node, or what starts it, opens whatever a program does.
var needed = []policy.Need{
	{Path: nodePath, Operations: loadIt, Reason: "Node itself, which a launcher may have to execute"},
	{Path: "/usr/libexec/gaol", Tree: true, Operations: readIt, Reason: "gaol's own JavaScript, which a worker's Node reads"},
	{Path: "/lib", Operations: seeIt, Reason: "programs name their loader by it"},
	{Path: "/lib64", Operations: seeIt, Reason: "as /lib"},
	{Path: "/usr/lib", Tree: true, Operations: loadIt, Loader: true, Reason: "libraries, and the loader on arm64"},
	{Path: "/usr/lib64", Tree: true, Operations: loadIt, Loader: true, Reason: "the loader on amd64"},
	{Path: "/etc/ssl/openssl.cnf", Operations: readIt, Reason: "OpenSSL does not start if it can't be read"},
	{Path: "/proc", Tree: true, Operations: listIt, Reason: "process.memoryUsage, os.cpus and the like; what is in it is held by scope process"},
	{Path: "/sys/fs/cgroup", Tree: true, Operations: listIt, Reason: "process.constrainedMemory and os.availableParallelism: the limits of the runs"},
	{Path: "/dev/null", Operations: useIt, Reason: "Node opens it as it starts, and for children that have no standard input"},
	{Path: "/dev/zero", Operations: useIt, Reason: "as harmless as /dev/null"},
	{Path: "/dev/full", Operations: useIt, Reason: "as harmless as /dev/null"},
	{Path: "/dev/random", Operations: useIt, Reason: "keys, where getrandom is not used"},
	{Path: "/dev/urandom", Operations: useIt, Reason: "as /dev/random"},
	{Path: "/dev/tty", Operations: useIt, Reason: "the terminal that the run was given, if any"},
	{Path: "/dev/pts", Tree: true, Operations: useIt, Reason: "the run's own pseudo-terminals"},
	{Path: "/dev/ptmx", Operations: seeIt, Reason: "as /dev/pts"},
	{Path: "/dev/fd", Operations: seeIt, Reason: "leads to the process's own open files"},
	{Path: "/dev/stdin", Operations: seeIt, Reason: "as /dev/fd"},
	{Path: "/dev/stdout", Operations: seeIt, Reason: "as /dev/fd"},
	{Path: "/dev/stderr", Operations: seeIt, Reason: "as /dev/fd"},
}
