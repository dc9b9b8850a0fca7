package sandbox

import (
	"time"

	"gaol/jail/hostcommand"
	"gaol/jail/mounts"
	"gaol/policy"
)

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

// Access is what a guest may do with a folder of the host.
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
