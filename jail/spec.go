package jail

import (
	"os"

	"gaol/jail/cgroup"
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
	// should belong to an id that no guest has, such as the host's root. It must
	// come from a trusted builder: processes begin their way into the jail as its
	// entry program, with the host's rights.
	Image string

	// Layer is laid over Image, read-only too: files that the guest can read
	// and execute and never change.
	Layer []File

	// Dirs are made in the writable layer, in order, and belong to the guest.
	// None may be above the entry program or hide a file of the image.
	Dirs []string // guest paths

	// Disk and Inodes bound the writable layer.
	Disk   int64 // bytes
	Inodes int64

	// Shm bounds /dev/shm.
	Shm int64 // bytes

	Hostname string

	// Reaper is pid 1: a static program of the image and its arguments.
	Reaper []string // the first is a guest path

	// Filter is the BPF program that every process of the jail runs under.
	Filter []byte

	// CgroupParent is the cgroup that the jail's is made in, an absolute path
	// in the hierarchy.
	CgroupParent string

	// StateDir is a folder on a local file system where live jails are
	// registered. All processes of a host that make jails must use the same.
	// Empty: /run/gaol.
	StateDir string
}

// File is a file of Spec.Layer.
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

	// Zygote forks the process. Nil: the entry program starts it.
	Zygote *zygote.Pool

	// Script, if not 0, is the place in Args, from 1, of the script that the forked
	// child runs as the Node that it is already; Path and Args are then the command
	// line that it bears. Zero: it executes Path. Of no use without Zygote.
	Script int

	// Parked, if not nil, becomes the process, unless it has ended before. Limits,
	// OpenFiles and FileSize are then what it was parked with.
	Parked *Parked

	Limits    cgroup.Limits // of the process and all that descends from it
	OpenFiles int64         // RLIMIT_NOFILE
	FileSize  int64         // RLIMIT_FSIZE, bytes
}
