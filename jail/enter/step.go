package enter

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Step is one step of the program. The functions below return them. Launch passes their files
// to the program.
type Step struct {
	Name   string // for errors
	Target string // what the step acts on; may be empty

	op     uint32 // enum op of src/main.c
	number uint32
	file   *os.File // whose descriptor in the program is number; may be nil
	value  uint64
	text   []string // at most four, except for Execute
}

const (
	opOOMScore uint32 = iota + 1
	opKeyring
	opJoinCgroup
	opUnshare
	opEffectiveUser
	opNamespaces
	opClone
	opAwaitHost
	opUser
	opHostname
	opLoopback
	opMount
	opRoot
	opHideEntries
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

// OOMScore makes the kernel kill this process before others when the machine is short of
// memory. It needs the host's /proc.
func OOMScore() Step { return Step{Name: "oom score", op: opOOMScore} }

// Keyring replaces the host's session keyring by a new one.
func Keyring() Step { return Step{Name: "keyring", op: opKeyring} }

// JoinCgroup moves the process into the cgroup whose tasks file is open.
func JoinCgroup(tasks *os.File) Step {
	return Step{Name: "cgroup", Target: tasks.Name(), op: opJoinCgroup, file: tasks}
}

// CgroupNamespace creates a cgroup namespace whose roots are the process's cgroups.
func CgroupNamespace() Step {
	return Step{Name: "cgroup namespace", op: opUnshare, value: unix.CLONE_NEWCGROUP}
}

// EffectiveUser sets the effective user id and keeps the capabilities. Namespaces that
// Clone creates then belong to that host user.
func EffectiveUser(uid int) Step { return Step{Name: "user", op: opEffectiveUser, number: uint32(uid)} }

// Namespaces enters namespaces of the process that the pidfd refers to.
func Namespaces(pidfd *os.File, flags uint64) Step {
	return Step{Name: "namespaces", op: opNamespaces, file: pidfd, value: flags}
}

// Clone creates a child, which executes the following steps. See clone(2) for the flags.
// The child is created in the cgroup whose directory is open, or, if that is nil, in its
// parent's.
func Clone(cgroup *os.File, flags uint64) Step {
	const parents = 0xffff_ffff
	return Step{Name: "clone", op: opClone, number: parents, file: cgroup, value: flags}
}

// AwaitHost waits until the function that was passed to Launch has returned.
func AwaitHost() Step { return Step{Name: "await", op: opAwaitHost} }

// User sets all user and group ids, which are those of the process's user namespace, and
// drops all supplementary groups.
func User(uid, gid int) Step {
	return Step{Name: "user", op: opUser, number: uint32(uid), value: uint64(gid)}
}

// Hostname sets the host name, and resets the domain name, of the UTS namespace.
func Hostname(name string) Step {
	return Step{Name: "hostname", Target: name, op: opHostname, text: []string{name}}
}

// Loopback brings the loopback interface up.
func Loopback() Step { return Step{Name: "loopback", op: opLoopback} }

// Mount calls mount(2).
func Mount(source, target, fstype string, flags uintptr, data string) Step {
	return Step{Name: "mount", Target: target, op: opMount, value: uint64(flags), text: []string{source, target, fstype, data}}
}

// Root makes a mount the root and unmounts everything that is not below it.
func Root(dir string) Step { return Step{Name: "pivot", Target: dir, op: opRoot, text: []string{dir}} }

// HideEntries mounts the empty file or folder over each entry of a procfs that is not in
// shown. It skips links and the folders of processes.
func HideEntries(dir string, shown []string, file, folder string) Step {
	list := "/" + strings.Join(shown, "/") + "/" // names contain no slash
	return Step{Name: "hide", Target: dir, op: opHideEntries, text: []string{dir, list, file, folder}}
}

// Session starts a new session without a terminal.
func Session() Step { return Step{Name: "session", op: opSession} }

// Terminal makes the terminal at descriptor 0 the session's controlling terminal. It must
// not be that of another session.
func Terminal() Step { return Step{Name: "terminal", op: opTerminal} }

// CloseOthers closes all descriptors but those of List.Files and of later steps, and the
// socket, which is closed when the process executes its own program.
func CloseOthers() Step { return Step{Name: "descriptors", op: opClose} }

// Umask sets the file mode creation mask.
func Umask(mask os.FileMode) Step { return Step{Name: "umask", op: opUmask, number: uint32(mask)} }

// Limit is a resource limit, soft and hard, see setrlimit(2). If the host's own hard limit
// is lower, that one is kept.
type Limit struct {
	Resource uint32 // RLIMIT_…
	Most     uint64
}

// Step returns the step that lowers the limit.
func (l Limit) Step() Step {
	return Step{Name: "limit", op: opLimit, number: l.Resource, value: l.Most}
}

// BoundingSet empties the capability bounding set: executed programs can't gain any.
func BoundingSet() Step { return Step{Name: "capabilities", op: opBoundingSet} }

// Capabilities drops all capabilities of the process.
func Capabilities() Step { return Step{Name: "capabilities", op: opCapabilities} }

// Chdir changes the working directory.
func Chdir(dir string) Step {
	return Step{Name: "chdir", Target: dir, op: opChdir, text: []string{dir}}
}

// DieWithHost makes the kernel kill the process when the host thread that started it ends.
// It then waits until Launch confirms that the host is still alive. It is for a jail's
// pid 1: the rest of the jail dies with it. Later steps must not change ids or
// capabilities, which would undo it.
func DieWithHost() Step {
	return Step{Name: "death signal", op: opDeathSignal, number: uint32(unix.SIGKILL)}
}

// Signals resets all signals: none is ignored, handled or blocked.
func Signals() Step { return Step{Name: "signals", op: opSignals} }

// NoNewPrivs prevents executed programs from gaining rights.
func NoNewPrivs() Step { return Step{Name: "no_new_privs", op: opNoNewPrivs} }

// Ruleset enforces the open Landlock ruleset, with flags of landlock_restrict_self(2).
func Ruleset(ruleset *os.File, flags uint32) Step {
	return Step{Name: "landlock", op: opRuleset, file: ruleset, value: uint64(flags)}
}

// Filter loads the list's system call filter.
func Filter() Step { return Step{Name: "seccomp", op: opFilter} }

// FilterWithListener is Filter for a program that sends calls to a listener, which the
// list's OnListener receives.
func FilterWithListener() Step { return Step{Name: "seccomp", op: opFilter, number: 1} }

// Execute executes a program. The first argument is its path, or a name to look up in PATH
// of the environment.
func Execute(args, env []string) Step {
	s := Step{Name: "exec", op: opExecute, number: uint32(len(args)), value: uint64(len(env))}
	if len(args) > 0 {
		s.Target = args[0]
	}
	s.text = append(append(s.text, args...), env...)
	return s
}
