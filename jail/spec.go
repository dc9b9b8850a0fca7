package jail

import (
	"os"

	"gaol/jail/cgroup"
	"gaol/jail/seccomp"
	"gaol/jail/seccomp/notify"
	"gaol/jail/zygote"
)

// The ids of guest processes, as they see them.
const (
	GuestUID = 1000
	GuestGID = 1000
)

// Spec is what a jail is made of. Paths called guest paths are absolute paths in
// the jail's tree; the others are the host's.
type Spec struct {
	// Image is the folder that the guest sees as its root, read-only. Its files
	// should belong to the host's root, and show as its own root's, which no guest can
	// become (see [CheckOwners]). It must come from a trusted builder: processes begin their way into the jail as its
	// entry program, with the host's rights.
	Image string

	// Layer is laid over Image, read-only too: files that the guest can read
	// and execute and never change.
	Layer []File

	// Dirs are made in the writable layer, in order, and belong to the guest.
	// None may be above the entry program or hide a file of the image.
	Dirs []string // guest paths

	// Sealed are those of Dirs that belong to the guest's root, and nobody else can
	// make anything in.
	Sealed []string

	// Mounts are folders and files of the host's that show in the tree.
	Mounts []Mount

	// Make are made where they are missing, empty and the guest's own; Keep as well, as
	// whose what is around them is.
	Make, Keep []Place

	// Files are the guest's own, with their folders. They are not part of Disk.
	Files []File

	// NotOwn, if not nil, tells of a guest path that what is made there belongs to the
	// guest's root all the same, whose mode the guest can't change. Folders of the host's
	// that are read and written have their owner's only.
	NotOwn func(path string) bool

	// Hide are places that show as an empty file or folder without permissions. Show
	// are parts of them that show as they are: of the places of both that hold a path,
	// the longest decides. What leads to a shown place can be entered. /proc can't be
	// hidden.
	Hide, Show []Place

	// ReadOnly are places where nothing can be changed (EROFS). Writable are parts of
	// them where it can: mounts, made for the purpose if there is none.
	ReadOnly, Writable []Place

	// NoExec are places from which nothing can be executed, or mapped as code. Exec
	// are parts of them that it can: the longest decides.
	NoExec, Exec []Place

	// Pinned are folders and files that stay where they are (EBUSY): in one of the guest's others
	// could be put in their place. So do those that lead to what is hidden or fixed.
	Pinned []string // guest paths

	// Limits are the memory and the processors that /proc and /sys/fs/cgroup show to the
	// guest, as if the machine had no more. A zero field shows the machine's own. They
	// enforce nothing: see Command.Limits.
	Limits cgroup.Limits

	// Disk and Inodes bound the writable layer.
	Disk   int64 // bytes
	Inodes int64

	// HideProcesses leaves in /proc only those that the reader may trace, which with a
	// Command.Ruleset are those of the same run.
	HideProcesses bool

	// Loopback brings the loopback interface up. There is no other in the jail.
	Loopback bool

	Hostname string

	// Reaper is pid 1: a static program of the image and its arguments.
	Reaper []string // the first is a guest path

	// Filter is the system call filter of pid 1, and of the processes whose Command
	// has none of its own.
	Filter *seccomp.Filter

	// CgroupParent is the cgroup that the jail's is made in, an absolute path
	// in the hierarchy.
	CgroupParent string

	// StateDir is a folder on a local file system where live jails are
	// registered. All processes of a host that make jails must use the same.
	// Empty: /run/gaol.
	StateDir string
}

// File is a file of Spec.Layer, or Spec.Files.
type File struct {
	Path string // guest path
	Mode os.FileMode
	Data []byte
}

// Command is a process to start in a jail.
type Command struct {
	Path string   // a guest path, or a name looked up in PATH of Env
	Args []string // without the program's name
	Env  []string // K=V
	Dir  string   // guest path of the working directory

	// Stdin, Stdout and Stderr become the process's descriptors 0 to 2, Files
	// those from 3 on. Nothing else of the host's is open in it. The caller
	// keeps its own copies and closes them.
	Stdin, Stdout, Stderr *os.File
	Files                 []*os.File

	// Terminal has Stdin, a terminal that [Jail.OpenTerminal] made for this process alone,
	// become the controlling one of the process's session.
	Terminal bool

	// Zygote forks the process. Nil: the entry program starts it.
	Zygote *zygote.Pool

	// Script, if not 0, is the place in Args, from 1, of the script that the forked
	// child runs as the Node that it is already; Path and Args are then the command
	// line that it bears. Zero: it executes Path. Of no use without Zygote.
	Script int

	// Parked, if not nil, becomes the process, unless it has ended before. Limits,
	// OpenFiles, FileSize, Filter and Ruleset are then what it was parked with.
	Parked *Parked

	// Filter replaces the jail's. If it notifies (seccomp.Filter.Notify), Refused, which
	// may be nil, is told of each call that it refuses by a label: before Wait returns,
	// and from one goroutine at a time.
	Filter  *seccomp.Filter
	Refused func(notify.Call)

	// Ruleset, if not nil, is put on the process, see [Jail.Ruleset], with
	// RulesetFlags of landlock_restrict_self(2). The caller keeps it.
	Ruleset      *os.File
	RulesetFlags uint32

	Limits    cgroup.Limits // of the process and all that descends from it
	OpenFiles int64         // RLIMIT_NOFILE
	FileSize  int64         // RLIMIT_FSIZE, bytes; 0: the host process's own
}
