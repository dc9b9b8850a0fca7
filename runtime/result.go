package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gaol/policy"
)

// Cause is why a run ended, unless its program exited.
type Cause string

const (
	CauseNone     Cause = ""         // its program exited, with any exit code
	CauseTimeout  Cause = "timeout"  // RunOptions.Timeout passed
	CauseCPU      Cause = "cpu"      // Limits.CPUTime was exceeded
	CauseMemory   Cause = "memory"   // the kernel killed a process of the run for memory, the first process's Node filled its heap, or the run held 16,384 file locks or 32 MiB in sockets beyond what it was charged for
	CausePids     Cause = "pids"     // it failed after Limits.Pids refused it a process or thread
	CauseOutput   Cause = "output"   // it printed more than Limits.Output, with KillOnOutput
	CauseCanceled Cause = "canceled" // its context ended or its runtime was closed, with an error beside the Result; or its caller killed it
	CauseSignal   Cause = "signal"   // a signal that gaol did not send ended it
	CauseLost     Cause = "lost"     // of batch runs of servers only: no machine has completed it
)

// Result describes a run that has ended, including a program that throws, exits with another code
// than 0, or exceeds a limit.
type Result struct {
	Stdout   []byte          `json:"-"`               // captured standard output, at most Limits.Output bytes
	Stderr   []byte          `json:"-"`               // captured standard error, likewise
	ExitCode int             `json:"exitCode"`        // exit status; 128+n for a guest that signal n killed
	Signal   string          `json:"signal"`          // name of the signal that killed it, such as "SIGKILL"; empty if none did
	Cause    Cause           `json:"cause"`           // why it ended, unless its program exited
	Value    json.RawMessage `json:"value,omitempty"` // JSON text of the last __return; nil when nothing was returned

	// Error is the uncaught error that ended a program of Run, Exec or SpawnCode; nil if it
	// ended otherwise. It comes from the guest. Standard error contains the same, except for
	// its Properties.
	Error *GuestError `json:"error,omitempty"`

	Queued   time.Duration `json:"queuedMs,omitempty"` // wall-clock time before its turn: see Options.MaxConcurrentRuns
	Duration time.Duration `json:"durationMs"`         // wall-clock time from its turn to the last process reaped
	Usage    Usage         `json:"usage"`

	Truncated Truncated `json:"truncated"`

	// Calls are the calls of host functions (Options.Bindings), in the order in which they
	// arrived: the first 1,000.
	Calls []Call `json:"calls,omitempty"`

	// Denials are the operations that permissions denied to the run, in the order of their
	// first occurrence: at most 64 different ones. If the run failed, the last ones are the limits of
	// disk, files and memory that it has reached.
	Denials []Denial `json:"denials"`

	// Launcher is the launcher that started the run. LauncherReason is why it differs from
	// Options.Launcher; empty if it does not.
	Launcher       Launcher `json:"launcher"`
	LauncherReason string   `json:"launcherReason,omitempty"`
}

// Truncated marks which fields of a Result are incomplete.
type Truncated struct {
	Stdout  bool `json:"stdout"`
	Stderr  bool `json:"stderr"`
	Denials bool `json:"denials"`
	Calls   bool `json:"calls,omitempty"`
}

// Usage is what all processes of a run together use. The run's cgroup counts all but Network.
type Usage struct {
	CPU        time.Duration `json:"cpuMs"`           // user and system time
	Memory     int64         `json:"-"`               // bytes now; 0 after the end
	PeakMemory int64         `json:"peakMemoryBytes"` // bytes
	PeakPids   int64         `json:"pids"`            // concurrent tasks; 0 where the kernel does not report it (before Linux 6.1)

	Network NetworkUsage `json:"network,omitzero"` // of external hosts
}

// NetworkUsage is a run's use of external hosts. Traffic with localhost does not count.
type NetworkUsage struct {
	Connections int64 `json:"connections"` // that the rules allow
	Lookups     int64 `json:"lookups"`     // questions to the resolver
	Denied      int64 `json:"denied"`      // connections and look-ups that were refused
	BytesIn     int64 `json:"bytesIn"`     // from servers
	BytesOut    int64 `json:"bytesOut"`    // to servers
}

// ErrNoValue is Decode's error for a run that returned nothing.
var ErrNoValue = errors.New("gaol: the program returned no value")

// Decode unmarshals Value into v. It returns Error if that is not nil. If the program returned no
// value, the error wraps [ErrNoValue] and describes how the program ended, unless its exit code
// was 0.
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

// Denial is an operation that permissions denied to a run, or a limit that a failed run has reached.
type Denial = policy.Denial

// DenialSource is the mechanism that reported a denial.
type DenialSource = policy.DenialSource

// The sources of denials.
const (
	SourceSeccomp = policy.SourceSeccomp
	SourceEgress  = policy.SourceEgress
	SourceAudit   = policy.SourceAudit
	SourceLimits  = policy.SourceLimits
	SourceStderr  = policy.SourceStderr
)
