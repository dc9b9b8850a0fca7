package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gaol/policy"
	"gaol/runtime/internal/enforce"
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
	// first occurrence: at most 64 different ones.
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

// Denial is an operation that permissions denied to a run. Its target is the guest's text,
// for display only.
type Denial struct {
	Scope     string           `json:"scope"`
	Operation policy.Operation `json:"operation"` // "socket" if the denied socket neither connects nor listens yet

	// Target is a path, or the kind of a socket. It is empty if the operation has none, such
	// as a fork, or if the kernel did not report it. It has at most 256 bytes of valid UTF-8.
	Target string `json:"target"`

	// Address is set if the rules allow the name in Target and refuse the address that it
	// resolves to, such as a private one, which a rule must name.
	Address string `json:"address,omitempty"`

	// Rule is the rule that denied it, such as "fs.rules[2]" or "fs.default". "mounts" stands
	// for a missing Options.UnixSockets in a runtime with mounts, "limits.connections" and
	// similar for [NetworkLimits], "quota." and a name for [NetworkQuota]. "hostPorts" stands for a
	// missing Options.HostPorts: the program failed because nothing in the sandbox listens on the
	// port of localhost.
	Rule string `json:"rule"`

	Count  int64        `json:"count"` // how often
	Source DenialSource `json:"source"`
}

// DenialSource is the mechanism that reported a denial.
type DenialSource string

const (
	// SourceSeccomp is the system call filter, which asks this process. It reports every
	// call that it refuses because of permissions.
	SourceSeccomp DenialSource = "seccomp"

	// SourceEgress is the proxy for egress. It reports every connection and look-up that it
	// refuses.
	SourceEgress DenialSource = "egress"

	// SourceAudit is the kernel's audit log, with Options.AuditDenials. The kernel may drop
	// records when it has many.
	SourceAudit DenialSource = "audit"

	// SourceStderr is a hint: the program failed, and the error that Node printed last is
	// about something that its permissions deny.
	SourceStderr DenialSource = "stderr"
)

func newDenial(d enforce.Denial) Denial {
	return Denial{d.Scope, d.Operation, d.Target, d.Address, d.Rule, d.Count, DenialSource(d.Source)}
}

// mapped returns f of each element. It keeps nil.
func mapped[A, B any](list []A, f func(A) B) (out []B) {
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}
