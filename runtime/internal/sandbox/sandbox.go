package sandbox

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"gaol/jail"
	"gaol/jail/hostcommand"
	"gaol/jail/mounts"
	"gaol/policy"
	"gaol/vfs/hostfs"
)

// StateDir is the folder of the host in which active sandboxes are registered. Guests must not
// see it.
const StateDir = "/run/gaol"

// ErrClosed is the error of operations on a closed sandbox and its files.
var ErrClosed = errors.New("already closed")

// FieldError is the error for an option that this machine, or the image, cannot provide.
type FieldError struct {
	Field string // of runtime.Options
	Err   error
}

// Error is the reason's text.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// Sandbox is a file tree and the processes that Start starts in it. It is safe for concurrent use.
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

	// OpenTerminal opens a terminal for one process. The error wraps ENOSPC if the guest has
	// too many.
	OpenTerminal(TerminalSize) (*Terminal, error)

	// Files opens the tree, with the rights of the guest's user. The caller closes it before the
	// sandbox; its operations then fail with ErrClosed.
	Files() (*hostfs.FS, error)

	// AddCommand adds a command of the host, see Command.OnCommand, unless it exists. The
	// sandbox must have been created with Spec.Commands.
	AddCommand(name string) error

	// OpenGateway redirects connections to external hosts to the caller. Spec.Plan must have
	// Egress. It is called once, before Start. The caller closes the gateway before the sandbox.
	OpenGateway() (*Gateway, error)

	// Dial connects to a TCP server of the guest, on an address of localhost. Listeners returns the
	// addresses of such servers in order, at most 1,024: all, or only those with a port. Spec.Plan must
	// have Inet. The caller closes the sandbox after the calls have returned. An error that wraps
	// ESRCH means that the sandbox has died.
	Dial(ctx context.Context, to netip.AddrPort, buffer int) (*net.TCPConn, error)
	Listeners(port uint16) ([]netip.AddrPort, error)

	// Resources counts what all processes use now. The caller closes the sandbox after it has
	// returned.
	Resources(ctx context.Context) (Resources, error)

	// Close kills all processes and removes the sandbox with its files. It returns when nothing
	// is left.
	Close() error
}

// Gateway holds the host's ends of the guest's connections to external hosts.
type Gateway struct {
	// TCP accepts connections to external hosts and to ports of the host. The local address of a
	// connection is its destination in the guest.
	TCP []*net.TCPListener

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

// TerminalSize is the size of a terminal's window in characters. Neither number may be zero.
type TerminalSize = jail.TerminalSize

// Terminal is a terminal for one process.
type Terminal = jail.Terminal

// Resources counts the processes, descriptors and sockets of a runtime's active runs, and the
// content of its tree.
type Resources = jail.Resources

// File is a file to create in the tree.
type File = mounts.File

// Mount shows a folder or a file of the host in the tree.
type Mount = mounts.Mount

// Owner is a user and a group of the host.
type Owner = mounts.Owner

// Access is a guest's access to a folder of the host.
type Access = mounts.Access

// The accesses.
const (
	ReadOnly    = mounts.ReadOnly
	CopyOnWrite = mounts.CopyOnWrite
	ReadWrite   = mounts.ReadWrite
)

// MaxCommands bounds the commands of a sandbox.
const MaxCommands = mounts.MaxCommands

// CommandDir is the folder of the tree in which the commands are.
const CommandDir = hostcommand.Dir

// ProgramDir is the folder of the tree for programs. The guest can enter it, and not list it.
const ProgramDir = mounts.ProgramDir

// ErrCallSize is the error of a CommandCall whose arguments or input are too large.
var ErrCallSize = hostcommand.ErrSize

// CheckCommand returns an error if a command cannot have the name.
func CheckCommand(name string) error { return hostcommand.CheckName(name) }

// Spec describes a sandbox.
type Spec struct {
	Image  string   // host path of the root
	Layer  []File   // shown over it; the guest can read and execute them
	Dirs   []string // the guest's own folders, in the order in which they are made
	Mounts []Mount
	Files  []File // the guest's own, which do not count against Disk

	Disk   int64 // bytes that the guest may write
	Inodes int64

	// Make are places that are created, for the guest, if they are missing. ReadOnly are places where nothing can be
	// changed, in addition to those of Plan, with exceptions in Writable.
	Make, ReadOnly, Writable []policy.Place

	Commands []string // the first commands of the host, see Command.OnCommand; nil: there are none, ever

	Hostname     string
	CgroupParent string // absolute path of the cgroup in which the sandbox's are made
	UnixSockets  bool   // processes may make unix sockets with names

	// Limits, OpenFiles and FileSize bound each Command's processes together, each process, and
	// the bytes of the longest file that a process may write; 0: no limit.
	Limits              Limits
	OpenFiles, FileSize int64

	Plan          *policy.Plan       // of Permissions, in World
	Permissions   policy.Permissions // complete
	World         policy.World
	AllowDegraded bool // omit rules that this machine cannot enforce, see Sandbox.Missing
	AuditDenials  bool // report what only the kernel's audit log has, see Command.Denied

	Warm *Warm // nil: each run starts a new Node

	// Park, if not 0, makes the sandbox start the process of the next Command in advance whenever its
	// last process has ended, while a processor is idle. The process waits for at most this long.
	Park time.Duration
}

// Creates reports whether an operation can create a file.
func Creates(op policy.Operation) bool {
	return op == "write" || op == "create_dir" || op == "symlink"
}

// Warm describes a Node that runs are forked from, which has run no guest code. Sandboxes of the same
// kind share it: Args, Env and Layer must be alike for all sandboxes of the process.
type Warm struct {
	WarmKind

	Args  func(heapMiB int64) []string // after Node
	Env   []string                     // K=V
	Layer []File                       // shown over the image
}

// WarmKind identifies a Node that runs are forked from.
type WarmKind struct {
	Image        string // as Spec.Image
	Node         string // guest path
	HeapMiB      int64  // of V8's old space, unless a Command has another
	CgroupParent string

	Forks    int // runs of one Node; 0: the default, as for the others
	Age      time.Duration
	Patience time.Duration // how long a fork may take
}
