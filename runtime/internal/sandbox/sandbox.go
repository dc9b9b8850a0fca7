package sandbox

import (
	"context"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"syscall"
	"time"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/hostcommand"
	"gaol/jail/kernel"
	"gaol/jail/landlock/audit"
	"gaol/jail/mounts"
	"gaol/policy"
	"gaol/vfs/hostfs"
)

// Sandbox is a file tree and the processes that Start starts in it. It is safe for concurrent use. The caller closes
// what it has opened before the sandbox.
type Sandbox interface {
	// Start starts a process and returns when its program runs. The caller closes its own
	// copies of the files. Once ctx is done, the process is killed and the error is that of ctx.
	// If the program does not exist, the error wraps fs.ErrNotExist.
	Start(ctx context.Context, c *Command) (Process, error)

	// Warm waits until what Spec.Warm describes is ready. With park it also starts the process of
	// the first Command in advance.
	Warm(ctx context.Context, park bool) error

	// Alive reports whether processes can be started.
	Alive() bool

	// Missing describes the rules of Spec.Plan that are not enforced, with Spec.AllowDegraded.
	Missing() []string

	// OpenTerminal opens a terminal for one process. The error wraps ENOSPC if the guest has too many.
	OpenTerminal(TerminalSize) (Terminal, error)

	// Files opens the tree, with the rights of the guest's user. Once it is closed, operations fail with ErrClosed.
	Files() (hostfs.Files, error)

	// AddCommand adds a command of the host, see Command.OnCommand, unless it exists. The
	// sandbox must have been created with Spec.Commands.
	AddCommand(name string) error

	// OpenGateway redirects connections to external hosts to the caller. Spec.Plan must have
	// Egress. It is called once, before Start.
	OpenGateway() (*Gateway, error)

	// Dial connects to a TCP server of the guest, on an address of localhost. Listeners returns the
	// addresses of such servers in order, at most 1,024: all, or only those with a port. Spec.Plan must
	// have Inet. An error that wraps ESRCH means that the sandbox has died.
	Dial(ctx context.Context, to netip.AddrPort, buffer int) (Conn, error)
	Listeners(port uint16) ([]netip.AddrPort, error)

	// Resources counts what all processes use now, and Free the bytes and files that they may still write.
	Resources(ctx context.Context) (Resources, error)
	Free() (disk, files int64, err error)

	// SetPaused stops all processes, and returns when they have stopped, or lets them continue. The caller starts none
	// until they continue. After an error, they do. Processes that are stopped can be killed.
	SetPaused(ctx context.Context, paused bool) error

	// Close kills all processes and removes the sandbox with its files. It returns when nothing is left.
	Close() error
}

// Conn is a connection to a guest's server.
type Conn interface {
	net.Conn
	syscall.Conn // which may be without descriptor, and then returns an error
	CloseWrite() error
	SetLinger(seconds int) error // 0: Close resets the connection, and discards what the guest has not read
}

// Terminal is the host's end of a terminal for one process: writes to it are input, and reads return output.
type Terminal interface {
	Stream

	// Guest is the other end, for Command.Files. EndOutput makes reads end once the guest has closed it.
	Guest() Stream
	EndOutput()

	// Resize sets the size of the window. EndOfInput returns the key that ends the input at the beginning of a line, or
	// 0. Their errors wrap os.ErrClosed once the terminal is closed.
	Resize(TerminalSize) error
	EndOfInput() (key byte, err error)
}

// Stream is an end of a pipe or a terminal.
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(at time.Time) error
	SetWriteDeadline(at time.Time) error
	syscall.Conn
}

// Gateway holds the host's ends of the guest's connections to external hosts.
type Gateway struct {
	// TCP accepts connections to external hosts and to ports of the host. The local address of a
	// connection is its destination in the guest.
	TCP []net.Listener

	// DNS and DNSTCP receive questions to Resolver, an address inside the sandbox.
	DNS      net.PacketConn
	DNSTCP   net.Listener
	Resolver netip.Addr

	// Owner returns the number that Command.OnOwner got for the process which has made the
	// guest's end of a connection or datagram. Network is tcp or udp.
	Owner func(network string, guest, to netip.AddrPort) (uint64, error)

	// Close closes the listeners. Accepted connections stay open.
	Close func() error
}

const (
	// StateDir is the folder of the host in which active sandboxes are registered. Guests must not see it.
	StateDir = jail.DefaultStateDir

	// CommandDir and ProgramDir are the folders of the tree for the host's commands, at most MaxCommands, and for programs.
	// The guest can enter the latter, and not list it.
	CommandDir  = hostcommand.Dir
	ProgramDir  = mounts.ProgramDir
	MaxCommands = mounts.MaxCommands

	// ReadOnly and the others are the values of Access.
	ReadOnly    = mounts.ReadOnly
	CopyOnWrite = mounts.CopyOnWrite
	ReadWrite   = mounts.ReadWrite
)

// CheckCommand returns an error if a command cannot have the name.
func CheckCommand(name string) error { return hostcommand.CheckName(name) }

// ErrClosed is the error of operations on a closed sandbox and its files.
var ErrClosed = jail.ErrClosed

// ErrCallSize is the error of a CommandCall whose arguments or input are too large.
var ErrCallSize = hostcommand.ErrSize

// These values of package jail are data.
type (
	// AuditError is the error of Spec.AuditDenials on a machine without an audit log.
	AuditError = audit.UnavailableError
	// File is a file to create in the tree.
	File = mounts.File
	// Owner is a user and a group of the host.
	Owner = mounts.Owner
	// Access is a guest's access to a folder of the host.
	Access = mounts.Access
	// Limits bound a process together with its descendants.
	Limits = cgroup.Limits
	// Usage is the use of resources by a process together with its descendants.
	Usage = cgroup.Usage
	// Exit describes how a process ended.
	Exit = jail.Exit
	// Resources counts the kernel objects of all processes.
	Resources = jail.Resources
	// TerminalSize is the size of a terminal's window in characters. Neither number may be zero.
	TerminalSize = jail.TerminalSize
)

// Spec describes a sandbox. Paths of the guest are absolute.
type Spec struct {
	// Image is the host's folder that guests see as their root. DiskDir is the host's folder with the guest's files; empty:
	// they are in memory. CgroupParent is the cgroup that contains the sandbox's, as an absolute path in the hierarchy.
	Image, DiskDir, CgroupParent, Hostname string

	// Layer is shown over the image; the guest can read and execute its files. Files are the guest's own, which do not
	// count against Disk and Inodes: the bytes, and the files and folders, that it may write.
	Layer, Files []File
	Disk, Inodes int64

	// Dirs are the guest's own folders, in the order in which they are made. Commands are the first commands of the host,
	// see Command.OnCommand; nil: there are none, ever.
	Dirs, Commands []string

	Mounts            []Mount `json:"-"`
	OneOverlay, Owned bool    // of a sandbox for a step of an image, as in mounts.Tree

	// Make are places that are created, for the guest, if they are missing. ReadOnly are places where nothing can be
	// changed, in addition to those of Plan, with exceptions in Writable.
	Make, ReadOnly, Writable []policy.Place

	// Limits, OpenFiles and FileSize bound each Command's processes together, each process, and
	// the bytes of the longest file that a process may write; 0: no limit.
	Limits              Limits
	OpenFiles, FileSize int64

	Plan        *policy.Plan       // of Permissions, in World
	Permissions policy.Permissions // complete
	World       policy.World

	// UnixSockets lets processes make unix sockets with names. AllowDegraded omits rules that this machine cannot enforce,
	// see Sandbox.Missing. AuditDenials reports what only the kernel's audit log has, see Command.Denied.
	UnixSockets, AllowDegraded, AuditDenials bool

	// Without are features that the kernel may lack without AllowDegraded, because the isolation is known to lack them. Nil: none.
	Without kernel.Profile

	OCI  *OCIRuntime // makes the sandbox a container of that runtime, without Warm
	Warm *Warm       // nil: each run starts a new Node

	// Park, if not 0, makes the sandbox start the process of the next Command in advance whenever its
	// last process has ended, while a processor is idle. The process waits for at most this long.
	Park time.Duration
}

// OCIRuntime is a program that makes containers.
type OCIRuntime = jail.OCIRuntime

// Mount shows a folder or a file of the host in the tree, see mounts.Mount.
type Mount struct {
	Source  fs.File `json:"-"` // for a sandbox in this kernel it is an *os.File
	Target  string  // guest path
	Access  Access
	Owner   *Owner // nil: the source's
	Overlay bool
}

// Warm describes a Node that runs are forked from, which has run no guest code. Sandboxes with the same fields share
// it; Env and Layer must be alike for all sandboxes of the process.
type Warm struct {
	Image, CgroupParent string   // as in Spec
	Layer               []File   // shown over the image
	Args, Env           []string // Node, a guest path, and its arguments, unless a Command has others; and variables, K=V

	Forks         int           // runs of one Node; 0: the default, as for the others
	Age, Patience time.Duration // of a Node, and how long a fork may take
}

// Creates reports whether an operation can create a file.
func Creates(op policy.Operation) bool {
	return op == "write" || op == "create_dir" || op == "symlink"
}
