package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/strictjson"
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
	CauseMoved    Cause = "moved"    // of processes of servers only: their sandbox was moved to another machine
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

// The types without methods, which package strictjson encodes by their tags.
type (
	plainResult     Result
	plainEvaluation Evaluation
	plainUsage      Usage
	plainLog        Log
	plainConnection Connection
	plainGuestError GuestError
)

// resultForm is the form of a Result in JSON. Output as text has U+FFFD for invalid UTF-8; then the bytes are beside it.
type resultForm struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes []byte `json:"stdoutBytes,omitempty"` // stdout, if it is not UTF-8
	StderrBytes []byte `json:"stderrBytes,omitempty"` // stderr, if it is not UTF-8
	plainResult
}

// guestErrorForm is the form of a GuestError in JSON.
type guestErrorForm struct {
	plainGuestError

	// Text is the message with the messages of the causes and the rule that denied the operation; absent
	// if it is "name: message".
	Text string `json:"text,omitempty"`
}

// withoutFrame encodes the errors of programs, which have no frame: snippets alone have one.
var withoutFrame = jsonv2.MarshalToFunc(func(e *jsontext.Encoder, g GuestError) error {
	return jsonv2.MarshalEncode(e, struct {
		guestErrorForm
		Frame string `json:"frame,omitempty"`
	}{guestErrorForm: g.form()})
})

// MarshalJSON returns the object that gaol run --json prints.
func (r Result) MarshalJSON() ([]byte, error) {
	f := resultForm{Stdout: string(r.Stdout), Stderr: string(r.Stderr), plainResult: plainResult(r)}
	if !utf8.Valid(r.Stdout) {
		f.StdoutBytes = r.Stdout
	}
	if !utf8.Valid(r.Stderr) {
		f.StderrBytes = r.Stderr
	}
	if f.Queued < time.Millisecond { // a turn without a wait takes some microseconds
		f.Queued = 0
	}
	return strictjson.MarshalResult(&f, withoutFrame)
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (r *Result) UnmarshalJSON(text []byte) error {
	var f resultForm
	if err := strictjson.UnmarshalResult(text, &f); err != nil {
		return err
	}
	*r = Result(f.plainResult)
	r.Stdout, r.Stderr = f.StdoutBytes, f.StderrBytes
	if r.Stdout == nil {
		r.Stdout = []byte(f.Stdout)
	}
	if r.Stderr == nil {
		r.Stderr = []byte(f.Stderr)
	}
	return nil
}

func (e *GuestError) form() guestErrorForm {
	f := guestErrorForm{plainGuestError: plainGuestError(*e)}
	if text := e.Error(); text != strings.TrimPrefix(e.Name+": "+e.Message, ": ") {
		f.Text = text
	}
	return f
}

// MarshalJSON implements [json.Marshaler].
func (e *GuestError) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(e.form()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (e *GuestError) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainGuestError)(e))
}

// MarshalJSON returns the object that gaol eval --json prints.
func (e Evaluation) MarshalJSON() ([]byte, error) {
	return strictjson.MarshalResult((*plainEvaluation)(&e))
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (e *Evaluation) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainEvaluation)(e))
}

// MarshalJSON implements [json.Marshaler].
func (u Usage) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(plainUsage(u)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (u *Usage) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainUsage)(u))
}

// MarshalJSON implements [json.Marshaler].
func (l Log) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(plainLog(l)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Log) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainLog)(l))
}

// MarshalJSON implements [json.Marshaler].
func (c Connection) MarshalJSON() ([]byte, error) {
	return strictjson.MarshalResult(plainConnection(c))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Connection) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainConnection)(c))
}
