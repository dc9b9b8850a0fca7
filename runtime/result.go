package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Cause says why a run ended, if not by itself.
type Cause string

const (
	CauseNone     Cause = ""         // it ended by itself, whatever its exit code
	CauseTimeout  Cause = "timeout"  // RunOptions.Timeout passed
	CauseCPU      Cause = "cpu"      // Limits.CPUTime was used up
	CauseMemory   Cause = "memory"   // the kernel killed a process of the run for memory, or the first process's Node had its heap full, or it held 16,384 file locks, or 32 MiB in sockets beyond what it was charged for
	CausePids     Cause = "pids"     // it failed after Limits.Pids refused it a process or thread
	CauseOutput   Cause = "output"   // it printed more than Limits.Output, with KillOnOutput
	CauseCanceled Cause = "canceled" // its context was done or its runtime was closed, with an error beside the Result; or its caller killed it
	CauseSignal   Cause = "signal"   // a signal ended it that gaol did not send
)

// Result is what came of a run. A guest that throws, exits non-zero, or is
// stopped by a limit has a Result like any other.
type Result struct {
	Stdout   []byte          // captured standard output, at most Limits.Output bytes
	Stderr   []byte          // captured standard error, likewise
	ExitCode int             // exit status; 128+n for a guest that signal n killed
	Signal   string          // name of the signal that killed it, such as "SIGKILL"; empty if none did
	Cause    Cause           // why it ended, if not by itself
	Value    json.RawMessage // JSON text of the last __return; nil when nothing was returned

	// Error is the error that ended a program of Run, Exec or SpawnCode because nobody
	// caught it. Nil: it ended otherwise. It is the guest's word, and more than standard
	// error says only in its Properties.
	Error *GuestError

	Duration time.Duration // wall-clock time from its turn to the last process reaped
	Queued   time.Duration // wall-clock time before that: see Options.MaxConcurrentRuns
	Usage    Usage

	// Launcher is the launcher that started the run: that of Options, unless
	// LauncherReason says why another one did.
	Launcher       Launcher
	LauncherReason string

	// Denials are what the permissions kept the run from, in the order of their first
	// time: at most 64 that differ.
	Denials []Denial
	// Calls are those of host functions (Options.Bindings), in the order in which they
	// came: the first 1,000.
	Calls []Call
	// Truncated says which streams had more than was captured, and whether there
	// were more denials or calls.
	Truncated struct{ Stdout, Stderr, Denials, Calls bool }

	told *told // nil but with Evaluate, once it has begun
}

// Usage is what a run uses, all its processes together, as its cgroup counts.
type Usage struct {
	CPU        time.Duration // user and system time
	Memory     int64         // bytes now; 0 after the end
	PeakMemory int64         // bytes
	PeakPids   int64         // tasks at once; 0 where the kernel does not tell (before Linux 6.1)
}

// ErrNoValue is Decode's error for a run that returned nothing.
var ErrNoValue = errors.New("gaol: the program returned no value")

// Decode unmarshals Value into v. It returns Error, if there is one, and an error that wraps
// [ErrNoValue] when the program returned nothing, with how it ended if that was not exit
// code 0.
func (r *Result) Decode(v any) error {
	switch {
	case r.Error != nil:
		return r.Error
	case r.Value != nil:
		return json.Unmarshal(r.Value, v)
	case r.Cause != CauseNone:
		return fmt.Errorf("%w: it was ended, cause %s", ErrNoValue, r.Cause)
	case r.ExitCode != 0:
		return fmt.Errorf("%w: it ended with exit code %d", ErrNoValue, r.ExitCode)
	}
	return ErrNoValue
}
