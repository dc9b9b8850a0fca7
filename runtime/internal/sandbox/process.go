package sandbox

import (
	"io"
	"net/netip"
	"syscall"
	"time"

	"gaol/policy"
)

// Command is a process to start. The sandbox adds its limits and what enforces its permissions.
type Command struct {
	// Args are the program and its arguments: a guest path, or a name to look up in PATH of Env. Script, if not 0, is
	// the index in Args of a script's path: a sandbox with Spec.Warm continues as Node with it. WarmArgs replaces the
	// Args of Spec.Warm, for another size of the heap.
	Args, WarmArgs []string
	Script         int

	Env []string // K=V
	Dir string   // guest path of the working directory

	// Files become the descriptors from 0 on: at least three, at most six. For a sandbox in this kernel they are *os.File.
	// With Terminal, the first three are the guest's end of a terminal, which becomes that of the process's session. With
	// FromRoot, a hint, the process begins in /, if it may enter Dir, and enters Dir itself.
	Files              []io.ReadWriteCloser `json:"-"`
	Terminal, FromRoot bool

	// File, if not nil, is a file that the guest can read, and not change, until the process ends.
	File *ProgramFile

	Plan *policy.Plan // nil: that of Spec

	// Denied, if not nil, is called for each operation that the plan denies, if the sandbox learns of
	// it, from any goroutine: from before Start returns until Process.Wait does. The target is the guest's text, of any
	// size and content. There is no rule and no count.
	Denied func(policy.Denial) `json:"-"`

	// Connect, if not nil, is called when the process connects an internet socket; if it returns
	// false, connect fails with EACCES. It is not a security boundary: the Gateway enforces the rules. It knows the names
	// of the addresses that this process has given to the guest.
	Connect func(to netip.AddrPort) bool `json:"-"`

	// OnOwner, if not nil, is called before the program runs, with the number that Gateway.Owner
	// returns for its sockets. No later process of the sandbox gets the same number.
	OnOwner func(owner uint64) `json:"-"`

	// OnCommand, if not nil, is called when a process calls a command, from one goroutine at a
	// time. It takes over the call, unless it returns an error: the errno that this wraps becomes the
	// caller's; with EAGAIN it tries again.
	OnCommand func(name string, call CommandCall) error `json:"-"`
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
	Folder, Name, Packages string
	Text                   []byte
}

// Flusher is a Process whose output arrives in the files of the command with a delay. The output ends soon after the process, even if
// other processes hold it open.
type Flusher interface {
	// Flush waits until all output that the process has written before has arrived.
	Flush()
}

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
