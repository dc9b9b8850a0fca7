package resultjson

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"gaol/runtime"
)

// Run is the result of a run. Programs rely on its shape.
type Run struct {
	// Stdout and Stderr are text: invalid UTF-8 becomes U+FFFD. Then StdoutBytes and
	// StderrBytes, which are absent otherwise, have the bytes in base64.
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes []byte `json:"stdoutBytes,omitempty"`
	StderrBytes []byte `json:"stderrBytes,omitempty"`

	Output     []Piece          `json:"output,omitzero"` // both streams in the order in which they were read, with --interleave
	ExitCode   int              `json:"exitCode"`
	Signal     string           `json:"signal"`
	Cause      runtime.Cause    `json:"cause"`
	Value      json.RawMessage  `json:"value,omitempty"`    // absent if the program returned none
	Error      *GuestError      `json:"error,omitempty"`    // absent unless an uncaught error ended the program
	QueuedMs   float64          `json:"queuedMs,omitempty"` // the wait for its turn, of at least a millisecond
	DurationMs float64          `json:"durationMs"`
	Usage      Usage            `json:"usage"`
	Truncated  Truncated        `json:"truncated"`
	Calls      []Call           `json:"calls,omitempty"` // of host functions
	Denials    []runtime.Denial `json:"denials"`

	// Launcher is the launcher that was used. LauncherReason is absent unless
	// another one was requested.
	Launcher       string `json:"launcher"`
	LauncherReason string `json:"launcherReason,omitempty"`
}

// GuestError is an error that the guest's code did not catch.
type GuestError struct {
	Name       string                     `json:"name"`
	Message    string                     `json:"message"`
	Stack      string                     `json:"stack"`
	Frame      *string                    `json:"frame,omitempty"` // of evaluations
	Code       string                     `json:"code,omitempty"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Cause      *GuestError                `json:"cause,omitempty"`
	Errors     []*GuestError              `json:"errors,omitempty"` // of an AggregateError or a SuppressedError

	// Text is the message with the messages of the causes and the rule that denied the operation; absent
	// if it is "name: message".
	Text   string `json:"text,omitempty"`
	Denied string `json:"denied,omitempty"` // the rule
}

// newGuestError converts e and its causes. With a frame, the object has that key even if no
// frame is known.
func newGuestError(e *runtime.GuestError, withFrame bool) *GuestError {
	if e == nil {
		return nil
	}
	converted := &GuestError{
		Name: e.Name, Message: e.Message, Stack: e.Stack, Code: e.Code, Properties: e.Properties, Denied: e.Denied,
		Cause: newGuestError(e.Cause, withFrame),
	}
	for _, inner := range e.Errors {
		converted.Errors = append(converted.Errors, newGuestError(inner, withFrame))
	}
	if text := e.Error(); text != strings.TrimPrefix(e.Name+": "+e.Message, ": ") {
		converted.Text = text
	}
	if withFrame {
		converted.Frame = &e.Frame
	}
	return converted
}

// Usage is the usage of a run.
type Usage struct {
	CPUMs           float64 `json:"cpuMs"`
	PeakMemoryBytes int64   `json:"peakMemoryBytes"`
	Pids            int64   `json:"pids"`

	Network *Network `json:"network,omitempty"` // absent if the run has not used any
}

// Network counts a run's use of the network.
type Network struct {
	Connections int64 `json:"connections"`
	Lookups     int64 `json:"lookups"`
	Denied      int64 `json:"denied"`
	BytesIn     int64 `json:"bytesIn"`
	BytesOut    int64 `json:"bytesOut"`
}

func newUsage(u runtime.Usage) Usage {
	converted := Usage{CPUMs: Milliseconds(u.CPU), PeakMemoryBytes: u.PeakMemory, Pids: u.PeakPids}
	if u.Network != (runtime.NetworkUsage{}) {
		n := Network(u.Network)
		converted.Network = &n
	}
	return converted
}

// Truncated marks incomplete fields.
type Truncated struct {
	Stdout  bool `json:"stdout"`
	Stderr  bool `json:"stderr"`
	Denials bool `json:"denials"`
	Calls   bool `json:"calls,omitempty"`
}

// NewRun converts a result.
func NewRun(res *runtime.Result) *Run {
	return &Run{
		Stdout: string(res.Stdout),
		Stderr: string(res.Stderr),

		StdoutBytes: bytesOf(res.Stdout),
		StderrBytes: bytesOf(res.Stderr),

		ExitCode:   res.ExitCode,
		Signal:     res.Signal,
		Cause:      res.Cause,
		Value:      res.Value,
		Error:      newGuestError(res.Error, false),
		QueuedMs:   queued(res.Queued),
		DurationMs: Milliseconds(res.Duration),
		Usage:      newUsage(res.Usage),
		Truncated:  Truncated(res.Truncated),
		Calls:      newCalls(res.Calls),
		Denials:    append([]runtime.Denial{}, res.Denials...), // a list even if empty

		Launcher:       res.Launcher.String(),
		LauncherReason: res.LauncherReason,
	}
}

// queued returns a wait in milliseconds, and 0 for a turn without a wait, which takes some microseconds.
func queued(d time.Duration) float64 {
	if d < time.Millisecond {
		return 0
	}
	return Milliseconds(d)
}

// bytesOf returns output that is not text, and nil for text.
func bytesOf(output []byte) []byte {
	if utf8.Valid(output) {
		return nil
	}
	return output
}

// Evaluation is the result of a snippet. Programs rely on its shape.
type Evaluation struct {
	Value      json.RawMessage `json:"value,omitempty"`   // absent if the code returns no value
	NoValue    string          `json:"noValue,omitempty"` // why the value of the last expression cannot be encoded as JSON
	Error      *GuestError     `json:"error"`
	Logs       []Log           `json:"logs"`
	Calls      []Call          `json:"calls"`
	DurationMs float64         `json:"durationMs"`
	Cause      runtime.Cause   `json:"cause"`
	Usage      Usage           `json:"usage"`

	Denials   []runtime.Denial    `json:"denials"`
	Truncated EvaluationTruncated `json:"truncated"`
}

// EvaluationTruncated marks incomplete lists.
type EvaluationTruncated struct {
	Logs    bool `json:"logs"`
	Calls   bool `json:"calls"`
	Denials bool `json:"denials"`
}

// Log is a line of an evaluation.
type Log struct {
	Level runtime.LogLevel `json:"level"`
	Text  string           `json:"text"`
	MS    float64          `json:"ms"`
}

// Call is a call of a host function.
type Call struct {
	Name           string  `json:"name"`
	MS             float64 `json:"ms"`
	ArgumentsBytes int     `json:"argumentsBytes"`
	ResultBytes    int     `json:"resultBytes"`
	Error          string  `json:"error"`
}

// NewEvaluation converts an evaluation.
func NewEvaluation(e *runtime.Evaluation) *Evaluation {
	o := &Evaluation{
		Value: e.Value, NoValue: e.NoValue, Error: newGuestError(e.Error, true), Logs: []Log{}, Calls: []Call{},
		DurationMs: Milliseconds(e.Duration), Cause: e.Cause, Usage: newUsage(e.Usage),
		Denials: append([]runtime.Denial{}, e.Denials...), Truncated: EvaluationTruncated(e.Truncated),
	}
	for _, l := range e.Logs {
		o.Logs = append(o.Logs, NewLog(l))
	}
	o.Calls = append(o.Calls, newCalls(e.Calls)...)
	return o
}

func newCalls(calls []runtime.Call) (list []Call) {
	for _, c := range calls {
		list = append(list, NewCall(c))
	}
	return list
}

// Milliseconds keeps three decimals: the rest is noise.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
