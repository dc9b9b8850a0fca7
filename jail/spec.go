package jail

import (
	"net/netip"
	"os"
	"slices"
	"strings"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
	"gaol/jail/seccomp"
	"gaol/jail/seccomp/notify"
	"gaol/jail/zygote"
)

// Spec describes a jail.
type Spec struct {
	// Tree is the file tree. Create sets its Protected and Proc.
	Tree

	// Limits are the memory and the processors that /proc and /sys/fs/cgroup show to the
	// guest. If a field is zero, they show the machine's. They enforce nothing: see
	// Command.Limits.
	Limits cgroup.Limits

	// HideProcesses hides in /proc the processes that the reader may not trace: with a
	// Command.Ruleset the processes of other runs.
	HideProcesses bool

	// Loopback brings up the loopback interface, the only one of the jail.
	Loopback bool

	// Identified gives each process's cgroup an id, see Command.OnCgroup. On machines with
	// cgroup v1 it needs a v2 hierarchy beside that.
	Identified bool

	Hostname string

	// Reaper is pid 1: a static program of the image and its arguments.
	Reaper []string // the first is a guest path

	// Filter is the system call filter of pid 1, and of processes if their Command has none.
	Filter *seccomp.Filter

	// OCI, if not nil, makes the jail a container of that runtime, without zygotes.
	OCI *OCIRuntime

	// CgroupParent is the cgroup that contains the jail's, as an absolute path in the
	// hierarchy.
	CgroupParent string

	// StateDir is a folder on a local file system where live jails are registered. All
	// processes of a host that create jails must use the same. Empty: /run/gaol.
	StateDir string
}

// Program is the program that a process runs, with its files. The caller closes its own copies of
// the files; no other descriptor of the host is open in the process. With Terminal, the first file must be a
// terminal that [Jail.OpenTerminal] returned for this process alone.
type Program = zygote.Program

// Command is a process to start in a jail. Script is ignored without Zygote.
type Command struct {
	Program

	// FromRoot makes the process begin in /, if it may enter Dir. Its program enters Dir. FromRoot is
	// ignored with Zygote.
	FromRoot bool

	// Zygote forks the process. Nil: the entry program starts it.
	Zygote *zygote.Pool

	// Parked, if not nil, becomes the process, unless it has ended. It keeps the Limits,
	// OpenFiles, FileSize, Filter and Ruleset that were passed to Park.
	Parked *Parked

	// Filter replaces the jail's filter. If it notifies (seccomp.Filter.Notify), Refused,
	// which may be nil, is called for each call that it refuses by a label: before Wait
	// returns, and from one goroutine at a time.
	Filter  *seccomp.Filter
	Refused func(notify.Call)

	// Connect decides about the connects of IP sockets, TCP and UDP, if Filter has
	// seccomp.AskConnect. A connect to an address for which it returns false gets EACCES. It
	// restricts nothing: see [notify.Listener.HandleConnects].
	Connect func(to netip.AddrPort) bool

	// OnCommand, if not nil, is called when the process, or one of its descendants, calls a
	// command of the jail, from one goroutine at a time. It returns the guest's ends of the
	// pipes, which the jail closes. The errno that an error wraps becomes the caller's; with
	// EAGAIN it tries again. Spec needs Commands, and Filter seccomp.AskCommand.
	OnCommand func(name string) (hostcommand.Ends, error)

	// NoLocalhost keeps the process from localhost, which others of the jail may use. Spec needs
	// Identified.
	NoLocalhost bool

	// OnCgroup, if not nil, is called before the program runs, with the id of its cgroup, that
	// all of its sockets have. The jail must have been created with Spec.Identified.
	OnCgroup func(id uint64)

	// Ruleset, if not nil, restricts the process, see [Jail.Ruleset], with RulesetFlags
	// of landlock_restrict_self(2). The caller closes it.
	Ruleset      *os.File
	RulesetFlags uint32

	Limits    cgroup.Limits // of the process and its descendants together
	OpenFiles int64         // RLIMIT_NOFILE
	FileSize  int64         // RLIMIT_FSIZE, bytes; 0: the host process's limit
}

// name returns the program's path or name; "" for a process that waits for its program.
func (c *Command) name() string { return strings.Join(c.Args[:min(len(c.Args), 1)], "") }

// Tree describes the file tree of a jail.
type Tree = mounts.Tree

// Place is a part of the tree.
type Place = mounts.Place

// File is a file to create in the tree.
type File = mounts.File

// Errors of mounts, see package mounts.
var (
	ErrNoIDMap    = mounts.ErrNoIDMap
	ErrNotInMount = mounts.ErrNotInMount
)

// CheckOwners returns an error that wraps ErrNoIDMap if guests would see uid 65534 as the
// owner of the files of an image in the folder dir.
func CheckOwners(dir string) error { return mounts.CheckOwners(dir, firstID) }

// fullTree returns the spec's tree with the parts of every jail.
func (s *Spec) fullTree() Tree {
	t := s.Tree
	if len(s.Reaper) > 0 { // without its pid 1 there is no jail
		addProgram(&t, s.Reaper[0])
	}
	// No cgroup file system is mounted in a jail: libuv needs only these files of it to size
	// Node for the limits.
	t.Layer = slices.Clip(t.Layer)
	for path, text := range s.Limits.Files() {
		t.Layer = append(t.Layer, File{Path: path, Mode: 0o444, Data: []byte(text)})
	}
	if s.OCI != nil { // the runtime executes the entry program in the tree
		addProgram(&t, enter.Path)
		t.Layer = append(t.Layer, s.limitFiles()...)
	}
	t.Protected = []string{enter.Path, enter.Reaper}
	t.Proc = procfs.Config{Hostname: s.Hostname, Memory: s.Limits.Memory, CPUs: s.Limits.CPUs}
	return t
}

// addProgram lets programs of the jail execute a file, whatever the tree hides.
func addProgram(t *Tree, path string) {
	t.Show, t.Exec = append(slices.Clip(t.Show), Place{Path: path}), append(slices.Clip(t.Exec), Place{Path: path})
}
