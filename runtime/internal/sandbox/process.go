package sandbox

import (
	"net/netip"
	"syscall"
	"time"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/policy"
)

// Command is a process to start. The sandbox adds its limits and what enforces its permissions.
type Command struct {
	// Program is what the process runs. Its Files are pipes or a terminal, whose other ends the
	// caller has; no other files of the host are inherited. Script and HeapMiB, the size of the
	// script's heap or 0 for that of Spec.Warm, are hints: a sandbox without Spec.Warm executes Args.
	jail.Program
	HeapMiB int64

	FromRoot bool // the process begins in /, if it may enter Dir, and enters Dir itself; a hint

	// File, if not nil, is a file that the guest can read, and not change, until the process ends.
	File *ProgramFile

	Plan *policy.Plan // nil: that of Spec

	// Denied, if not nil, is called for each operation that the plan denies, if the sandbox learns of
	// it, from any goroutine: from before Start returns until Process.Wait does.
	Denied func(Denial)

	// Connect, if not nil, is called when the process connects an internet socket; if it returns
	// false, connect fails with EACCES. It is not a security boundary: the Gateway enforces the rules.
	Connect func(to netip.AddrPort) bool

	// OnOwner, if not nil, is called before the program runs, with the number that Gateway.Owner
	// returns for its sockets. No later process of the sandbox gets the same number.
	OnOwner func(owner uint64)

	// OnCommand, if not nil, is called when a process calls a command, from one goroutine at a
	// time. It takes over the call, unless it returns an error: the errno that this wraps becomes the
	// caller's; with EAGAIN it tries again.
	OnCommand func(name string, call CommandCall) error
}

// CommandCall is a call of a command, which has one user at a time, except for Close. A call that is closed
// before Reply has failed.
type CommandCall interface {
	// Arguments returns the arguments, and then Input the standard input, which may have most bytes.
	// The error wraps ErrCallSize if they have more.
	Arguments(most int64) ([]string, error)
	Input(most int64) ([]byte, error)

	// Reply sends the output, and the status with which the program exits.
	Reply(output, errors []byte, status uint8) error

	// Wait returns when the program has ended.
	Wait()

	// SetDeadline makes the methods fail that have not returned by then. The zero time means never.
	SetDeadline(at time.Time) error
	Close()
}

// ProgramFile is a file in a new folder of ProgramDir. Beside it is a link node_modules to Packages.
type ProgramFile struct {
	Folder, Name string
	Text         []byte
	Packages     string
}

// Denial is an operation that a plan denied. Its target is the guest's text, of any size and
// content.
type Denial struct {
	Scope     string
	Operation policy.Operation
	Target    string
	Source    Source
}

// Source is the mechanism that reported a denial.
type Source string

// The sources of a sandbox's denials.
const (
	Seccomp Source = "seccomp" // the filter of system calls asked this process
	Audit   Source = "audit"   // the kernel's audit log
)

// Process is a process that Start started, with all its descendants.
type Process interface {
	// GuestPID returns the process's ID, as the guest sees it.
	GuestPID() int

	// Signal sends a signal to the process or, with group, to all of the process group that it
	// leads. It returns os.ErrProcessDone if the process has ended.
	Signal(s syscall.Signal, group bool) error

	// Kill kills the process and all its descendants. It does not wait.
	Kill()

	// Done is closed when nothing is left of the process and its descendants.
	Done() <-chan struct{}

	// Wait waits for Done and for late reports of denials, and returns how the process ended. It
	// must be called once.
	Wait() (Exit, error)

	// Usage returns the resources that the process and its descendants have used so far; after
	// the process has exited, the same as Wait.
	Usage() (Usage, error)
}

// Exit describes how a process ended.
type Exit = jail.Exit

// Limits bound the resources of a process together with its descendants.
type Limits = cgroup.Limits

// Usage is the current and total resource usage of a process and its descendants.
type Usage = cgroup.Usage
