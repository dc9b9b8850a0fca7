package sandbox

import (
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"

	"gaol/policy"
)

// Command is a process to start.
type Command struct {
	Path string   // a guest path, or a name that is looked up in PATH of Env
	Args []string // without the program's name
	Env  []string // K=V
	Dir  string   // guest path of the working directory

	FromRoot bool // the process begins in /, if it may enter Dir, and enters Dir itself; a hint

	// Stdin, Stdout and Stderr are pipes or a terminal, and become the process's descriptors 0
	// to 2; Files become descriptors 3 and above. No other files of the host are inherited.
	Stdin, Stdout, Stderr *os.File
	Files                 []*os.File

	Terminal bool // Stdin is the Guest of a Terminal, which controls the process's session

	// Script, if not 0, is the index in Args, from 1, of a script that a warm Node may run
	// instead of a new one, and HeapMiB is the size of its heap, 0 for that of Spec.Warm. Both are
	// hints: an implementation without Spec.Warm starts Path with Args.
	Script  int
	HeapMiB int64

	Rules *Rules // loaded by the sandbox

	Limits    Limits // of the process and its descendants together
	OpenFiles int64  // of each process
	FileSize  int64  // bytes of the longest file that it may write; 0: no limit

	// Denied is called for each operation that the rules deny, if the sandbox learns of it, from
	// any goroutine: from before Start returns until Process.Release does. Only Prepare does not
	// need it.
	Denied func(Denial)

	// Connect, if not nil, is called when the process connects an internet socket; if it returns
	// false, connect fails with EACCES. It is not a security boundary: the Gateway enforces the rules.
	Connect func(to netip.AddrPort) bool

	// OnOwner, if not nil, is called before the program runs, with the number that Gateway.Owner
	// returns for its sockets. No later process of the sandbox gets the same number.
	OnOwner func(owner uint64)

	// OnCommand, if not nil, is called when a process calls a command, from one goroutine at a
	// time. It returns the guest's ends of the pipes, which the sandbox closes. The errno that an
	// error wraps becomes the caller's; with EAGAIN it tries again.
	OnCommand func(name string) (CommandEnds, error)
}

// Rules are the permissions of a process and what enforces them.
type Rules struct {
	Permissions policy.Permissions // complete: no scope is left to a default
	Plan        *policy.Plan

	// Sandbox.Load sets these: the rules that it cannot enforce, only with Spec.AllowDegraded, and
	// its data.
	Missing []string
	Loaded  io.Closer
}

// Close releases what Load has made. It may be called on nil.
func (r *Rules) Close() {
	if r != nil && r.Loaded != nil {
		_ = r.Loaded.Close() // nothing depends on it any more
	}
}

// Denial is an operation that rules denied. Its target is the guest's text, of any size and
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

	// Wait waits for Done and returns how the process ended.
	Wait() (Exit, error)

	// Usage and CPU return the resources that the process and its descendants have used so far. After
	// the process has exited, Usage returns the same as Wait, and CPU may fail.
	Usage() (Usage, error)
	CPU() (time.Duration, error)

	// Release waits for late reports of denials. It must be called once after Wait.
	Release()
}

// Exit describes how a process ended.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it

	// Uncharged reports that it was killed because it held too much memory of the kernel that
	// its limit does not count.
	Uncharged bool
	Usage     Usage
}

// Limits bound the resources of a process together with its descendants.
type Limits struct {
	Memory int64   // bytes
	CPUs   float64 // processors kept busy
	Pids   int64   // tasks: processes and threads
}

// Usage is the current and total resource usage of a process and its descendants.
type Usage struct {
	CPU         time.Duration // processor time, user and system
	Memory      int64         // bytes now
	PeakMemory  int64         // bytes; 0: unknown
	PeakPids    int64         // tasks at one time; 0: unknown
	OOMKills    int64         // processes killed because memory ran out
	PidsRefused int64         // processes and threads that the limit on tasks refused
}
