package enter

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Step is one thing for the program to do. The functions below make them. A number
// that they take for a file is that of the program's descriptor.
type Step struct {
	Name   string // as in errors
	Target string // what it is done to; may be empty

	op     uint32 // enum op of src/main.c
	number uint32
	value  uint64
	text   []string // Execute has any number, the others have four at most
}

const (
	opOOMScore uint32 = iota + 1
	opKeyring
	opJoin
	opUnshare
	opActFor
	opNamespaces
	opClone
	opAwait
	opBecome
	opHostname
	opLoopback
	opMount
	opRoot
	opHideOthers
	opSession
	opClose
	opUmask
	opLimit
	opBoundingSet
	opCapabilities
	opChdir
	opDeathSignal
	opSignals
	opNoNewPrivs
	opRuleset
	opFilter
	opExecute
	opTerminal
)

// OOMScore has the kernel, when the machine is short of memory, kill this process
// before others. It takes the host's /proc.
func OOMScore() Step { return Step{Name: "oom score", op: opOOMScore} }

// Keyring gives the process a session keyring of its own.
func Keyring() Step { return Step{Name: "keyring", op: opKeyring} }

// Join puts the process into the cgroup whose tasks file it has open.
func Join(file int, path string) Step {
	return Step{Name: "cgroup", Target: path, op: opJoin, number: uint32(file)}
}

// CgroupNamespace makes one, which begins at the cgroups that the process is in.
func CgroupNamespace() Step {
	return Step{Name: "cgroup namespace", op: opUnshare, value: unix.CLONE_NEWCGROUP}
}

// ActFor has the namespaces that Clone makes be this host user's, without giving
// up the host's rights.
func ActFor(uid int) Step { return Step{Name: "user", op: opActFor, number: uint32(uid)} }

// Namespaces enters those of the process that a pidfd stands for.
func Namespaces(pidfd int, flags uint64) Step {
	return Step{Name: "namespaces", op: opNamespaces, number: uint32(pidfd), value: flags}
}

// Clone goes on in a child, see clone(2) for the flags. The child is born in the
// cgroup whose folder is open, unless that is NoCgroup. Hand tells its pid.
func Clone(cgroup int, flags uint64) Step {
	return Step{Name: "clone", op: opClone, number: uint32(cgroup), value: flags}
}

// NoCgroup has Clone's child stay in its parent's.
const NoCgroup = -1

// Await waits until the function that Hand is given has returned.
func Await() Step { return Step{Name: "await", op: opAwait} }

// Become takes on ids, as they are in the process's user namespace, for good, and
// leaves all groups.
func Become(uid, gid int) Step {
	return Step{Name: "user", op: opBecome, number: uint32(uid), value: uint64(gid)}
}

// Hostname names the UTS namespace.
func Hostname(name string) Step {
	return Step{Name: "hostname", Target: name, op: opHostname, text: []string{name}}
}

// Loopback takes the loopback interface up.
func Loopback() Step { return Step{Name: "loopback", op: opLoopback} }

// Mount is mount(2).
func Mount(source, target, fstype string, flags uintptr, data string) Step {
	return Step{Name: "mount", Target: target, op: opMount, value: uint64(flags), text: []string{source, target, fstype, data}}
}

// Root makes a mount the root, and drops all mounts that are not below it.
func Root(dir string) Step { return Step{Name: "pivot", Target: dir, op: opRoot, text: []string{dir}} }

// HideOthers mounts an empty file or folder over each entry of a folder of procfs that
// is not in a list, and is no link and no folder of a process.
func HideOthers(dir string, shown []string, file, folder string) Step {
	list := "/" + strings.Join(shown, "/") + "/" // no name has a slash
	return Step{Name: "hide", Target: dir, op: opHideOthers, text: []string{dir, list, file, folder}}
}

// Session starts a session without a terminal.
func Session() Step { return Step{Name: "session", op: opSession} }

// Terminal makes the open terminal the session's. No other session may have it.
func Terminal(file int) Step { return Step{Name: "terminal", op: opTerminal, number: uint32(file)} }

// CloseFrom closes all descriptors from one on. The socket, which ends by itself when
// the process's own program runs, is the last that may be kept.
func CloseFrom(file int) Step { return Step{Name: "descriptors", op: opClose, number: uint32(file)} }

// Umask sets the file mode creation mask.
func Umask(mask os.FileMode) Step { return Step{Name: "umask", op: opUmask, number: uint32(mask)} }

// Limit is a resource limit, soft and hard, see setrlimit(2). It only falls: where
// the host's own hard limit is lower, that stays.
type Limit struct {
	Resource uint32 // RLIMIT_…
	Most     uint64
}

// Step lowers the limit.
func (l Limit) Step() Step {
	return Step{Name: "limit", op: opLimit, number: l.Resource, value: l.Most}
}

// BoundingSet empties the capability bounding set: no program can get any.
func BoundingSet() Step { return Step{Name: "capabilities", op: opBoundingSet} }

// Capabilities drops those that the process has.
func Capabilities() Step { return Step{Name: "capabilities", op: opCapabilities} }

// Chdir goes to the working directory.
func Chdir(dir string) Step {
	return Step{Name: "chdir", Target: dir, op: opChdir, text: []string{dir}}
}

// DieWithHost has the kernel kill the process when the host thread that started
// it ends, and waits until Hand confirms that the host is alive after that was set. It is
// for a jail's pid 1: the rest of the jail dies with it. Steps that change ids or
// capabilities would undo it.
func DieWithHost() Step {
	return Step{Name: "death signal", op: opDeathSignal, number: uint32(unix.SIGKILL)}
}

// Signals has no signal be ignored, caught or blocked.
func Signals() Step { return Step{Name: "signals", op: opSignals} }

// NoNewPrivs has no program that is executed give the process any rights.
func NoNewPrivs() Step { return Step{Name: "no_new_privs", op: opNoNewPrivs} }

// Ruleset puts a Landlock ruleset on that is open, with flags of
// landlock_restrict_self(2).
func Ruleset(file int, flags uint32) Step {
	return Step{Name: "landlock", op: opRuleset, number: uint32(file), value: uint64(flags)}
}

// Filter puts the list's system call filter on.
func Filter() Step { return Step{Name: "seccomp", op: opFilter} }

// FilterListened is Filter for a program that refers calls to a listener, which the
// list's Listening gets.
func FilterListened() Step { return Step{Name: "seccomp", op: opFilter, number: 1} }

// Execute runs a program. The first argument is its path, or a name that is looked
// up in PATH of the environment.
func Execute(args, env []string) Step {
	s := Step{Name: "exec", op: opExecute, number: uint32(len(args)), value: uint64(len(env))}
	if len(args) > 0 {
		s.Target = args[0]
	}
	s.text = append(append(s.text, args...), env...)
	return s
}
