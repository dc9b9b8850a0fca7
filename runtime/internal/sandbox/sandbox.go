package sandbox

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

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
	// Load prepares what enforces rules, before they are part of a Command, and sets their
	// Missing. The caller closes the rules.
	Load(*Rules) error

	// Start starts a process and returns when its program runs. The caller closes its own
	// copies of the files. Once ctx is done, the process is killed and the error is that of ctx.
	// If the program does not exist, the error wraps fs.ErrNotExist.
	Start(ctx context.Context, c *Command) (Process, error)

	// Warm waits until what Spec.Warm describes is ready.
	Warm(ctx context.Context) error

	// Prepare starts the process of the next run in advance, for a Command with the Rules and
	// limits of c. KeepPreparing, which is called before Start, makes the sandbox do so whenever its
	// last process has ended, while a processor is idle. The prepared process waits for at most this
	// long. Both need Spec.Warm.
	Prepare(ctx context.Context, c *Command) error
	KeepPreparing(c *Command, most time.Duration)

	// Alive reports whether processes can be started. Fresh reports whether the process of
	// Prepare, if any, still waits, too.
	Alive() bool
	Fresh() bool

	// OpenTerminal opens a terminal for one process. The error wraps ENOSPC if the guest has
	// too many.
	OpenTerminal(TerminalSize) (*Terminal, error)

	// Files opens the tree, with the rights of the guest's user. The caller closes it before the
	// sandbox; its operations then fail with ErrClosed.
	Files() (*hostfs.FS, error)

	// AddCommand adds a command of the host, see Command.OnCommand, unless it exists. The
	// sandbox must have been created with Tree.Commands.
	AddCommand(name string) error

	// AddProgram makes a folder in ProgramDir with a file of that name, which the guest can read
	// and not change, and a link node_modules to packages. No folder of that name may exist.
	// RemoveProgram removes it.
	AddProgram(folder string, file File, packages string) error
	RemoveProgram(folder, file string) error

	// OpenGateway redirects connections to external hosts to the caller. Spec.Net must have Egress. It
	// is called once, before Start. The caller closes the gateway before the sandbox.
	OpenGateway() (*Gateway, error)

	// Dial connects to a TCP server of the guest, on an address of localhost. OpenListeners opens
	// a list of such servers. Spec.Net must have Inet. The caller closes both before the sandbox,
	// and the sandbox after the calls have returned. An error that wraps ESRCH means that the
	// sandbox has died.
	Dial(ctx context.Context, to netip.AddrPort, buffer int) (*net.TCPConn, error)
	OpenListeners() (Listeners, error)

	// Resources counts what all processes use now. The caller closes the sandbox after it has
	// returned.
	Resources(ctx context.Context) (Resources, error)

	// Close kills all processes and removes the sandbox with its files. It returns when nothing
	// is left.
	Close() error
}

// Listeners is a list of the guest's TCP servers.
type Listeners interface {
	// List returns their addresses in order, at most 1,024: all, or only those with a port.
	List(port uint16) ([]netip.AddrPort, error)
	Close()
}

// Gateway holds the host's ends of the guest's connections to external hosts.
type Gateway struct {
	// TCP accepts connections to external hosts and to ports of the host. The local address of a
	// connection is its destination in the guest.
	TCP []*net.TCPListener

	// DNS and DNSTCP receive questions to Resolver, an address inside the sandbox.
	DNS      *net.UDPConn
	DNSTCP   *net.TCPListener
	Resolver netip.Addr
	Guest    []netip.Addr // of the guest's programs

	// Owner returns the number that Command.OnOwner got for the process which has made the
	// guest's end of a connection or datagram. Network is tcp or udp.
	Owner func(network string, guest, to netip.AddrPort) (uint64, error)

	// Close closes the listeners. Accepted connections stay open.
	Close func() error
}

// TerminalSize is the size of a terminal's window in characters. Neither number may be zero.
type TerminalSize struct{ Rows, Cols uint16 }

// Terminal is a terminal for one process.
type Terminal struct {
	TerminalControl

	// Host is the host's end: writes to it are input, and reads return output. Guest is the other
	// end, for the process's standard streams, and so is Kept: once all files of that end are
	// closed, reads of Host fail with EIO instead of waiting for output.
	Host, Guest, Kept *os.File
}

// TerminalControl changes and reads a terminal's settings. Its errors wrap os.ErrClosed if the
// host's end is closed.
type TerminalControl interface {
	// Resize sets the size, of which the foreground process group is notified.
	Resize(TerminalSize) error

	// EndOfInput returns the key that ends the input at the beginning of a line, 0 for none.
	EndOfInput() (key byte, err error)
}

// Resources counts the processes, descriptors and sockets of a runtime's active runs, and the
// content of its tree.
type Resources struct {
	Processes   int
	Descriptors int // of all processes together
	Sockets     int // that a process has open
	Pipes       int // without a name
	Terminals   int

	Listeners   int // TCP sockets that listen
	Connections int // TCP sockets that are connected; two for a connection inside the sandbox

	Memory int64 // bytes that are charged to the runs
	Disk   int64 // bytes in the writable layer
	Inodes int64 // files and folders in the writable layer

	// Truncated reports that a limit ended the count of descriptors, sockets, pipes and terminals.
	Truncated bool
}

// Tree describes the file tree. A sandbox sets Protected and Proc itself.
type Tree = mounts.Tree

// Place is a part of the tree.
type Place = mounts.Place

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

// CommandCall is the host's end of a call of a command.
type CommandCall = hostcommand.Call

// CommandEnds are the guest's ends.
type CommandEnds = hostcommand.Ends

// ErrCallSize is the error of a CommandCall whose arguments or input are too large.
var ErrCallSize = hostcommand.ErrSize

// OpenCall opens the pipes of a call.
func OpenCall() (*CommandCall, CommandEnds, error) { return hostcommand.Open() }

// CheckCommand returns an error if a command cannot have the name.
func CheckCommand(name string) error { return hostcommand.CheckName(name) }

// Spec describes a sandbox.
type Spec struct {
	Tree

	Hostname      string
	Limits        Limits // that the guest reads in /proc and /sys; they enforce nothing: see Command.Limits
	CgroupParent  string // absolute path of the cgroup in which the sandbox's are made
	Net           policy.Net
	HideProcesses bool // processes of other runs do not appear in /proc
	UnixSockets   bool // processes may make unix sockets with names

	AllowDegraded bool // omit rules that this machine cannot enforce, see Rules.Missing
	AuditDenials  bool // report what only the kernel's audit log has, see Command.Denied

	Warm *Warm // nil: each run starts a new Node
}

// Warm describes a Node that runs are forked from, which has run no guest code. Sandboxes with
// the same Image and the same fields but Args, Env and Layer share it; these must be alike for
// all sandboxes of the process.
type Warm struct {
	Node    string // guest path
	HeapMiB int64  // of V8's old space, unless a Command has another

	Args  func(heapMiB int64) []string // after Node
	Env   []string                     // K=V
	Layer []File                       // shown over the image

	CgroupParent string

	Forks    int // runs of one Node; 0: the default, as for the others
	Age      time.Duration
	Patience time.Duration // how long a fork may take
}
