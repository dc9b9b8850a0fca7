package report

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"gaol/runtime"
)

// Run is the object that gaol run --json prints. Programs rely on its shape.
type Run struct {
	// Stdout and Stderr are text: invalid UTF-8 becomes U+FFFD.
	Stdout     string           `json:"stdout"`
	Stderr     string           `json:"stderr"`
	Output     []Piece          `json:"output,omitzero"` // both streams in the order in which they were read, with --interleave
	ExitCode   int              `json:"exitCode"`
	Signal     string           `json:"signal"`
	Cause      runtime.Cause    `json:"cause"`
	Value      json.RawMessage  `json:"value,omitempty"` // absent if the program returned none
	Error      *guestError      `json:"error,omitempty"` // absent unless an uncaught error ended the program
	DurationMs float64          `json:"durationMs"`
	Usage      usage            `json:"usage"`
	Truncated  truncated        `json:"truncated"`
	Denials    []runtime.Denial `json:"denials"`

	// Launcher is the launcher that was used. LauncherReason is absent unless
	// another one was requested.
	Launcher       string `json:"launcher"`
	LauncherReason string `json:"launcherReason,omitempty"`
}

// guestError is an error that the guest's code did not catch.
type guestError struct {
	Name       string                     `json:"name"`
	Message    string                     `json:"message"`
	Stack      string                     `json:"stack"`
	Frame      *string                    `json:"frame,omitempty"` // of evaluations
	Code       string                     `json:"code,omitempty"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Cause      *guestError                `json:"cause,omitempty"`
}

// newGuestError converts e and its causes. With a frame, the object has that key even if no
// frame is known.
func newGuestError(e *runtime.GuestError, withFrame bool) *guestError {
	if e == nil {
		return nil
	}
	converted := &guestError{e.Name, e.Message, e.Stack, nil, e.Code, e.Properties, newGuestError(e.Cause, withFrame)}
	if withFrame {
		converted.Frame = &e.Frame
	}
	return converted
}

type usage struct {
	CPUMs           float64 `json:"cpuMs"`
	PeakMemoryBytes int64   `json:"peakMemoryBytes"`
	Pids            int64   `json:"pids"`

	Network *network `json:"network,omitempty"` // absent if the run has not used any
}

type network struct {
	Connections int64 `json:"connections"`
	Lookups     int64 `json:"lookups"`
	Denied      int64 `json:"denied"`
	BytesIn     int64 `json:"bytesIn"`
	BytesOut    int64 `json:"bytesOut"`
}

func newUsage(u runtime.Usage) usage {
	converted := usage{CPUMs: Milliseconds(u.CPU), PeakMemoryBytes: u.PeakMemory, Pids: u.PeakPids}
	if u.Network != (runtime.NetworkUsage{}) {
		n := network(u.Network)
		converted.Network = &n
	}
	return converted
}

type truncated struct {
	Stdout  bool `json:"stdout"`
	Stderr  bool `json:"stderr"`
	Denials bool `json:"denials"`
}

// NewRun converts a result.
func NewRun(res *runtime.Result) *Run {
	return &Run{
		Stdout:     string(res.Stdout),
		Stderr:     string(res.Stderr),
		ExitCode:   res.ExitCode,
		Signal:     res.Signal,
		Cause:      res.Cause,
		Value:      res.Value,
		Error:      newGuestError(res.Error, false),
		DurationMs: Milliseconds(res.Duration),
		Usage:      newUsage(res.Usage),
		Truncated:  truncated{res.Truncated.Stdout, res.Truncated.Stderr, res.Truncated.Denials},
		Denials:    append([]runtime.Denial{}, res.Denials...), // a list even if empty

		Launcher:       res.Launcher.String(),
		LauncherReason: res.LauncherReason,
	}
}

// Evaluation is the object that gaol eval --json prints. Programs rely on its shape.
type Evaluation struct {
	Result     json.RawMessage `json:"result,omitempty"`   // absent if the code has no value
	NoResult   string          `json:"noResult,omitempty"` // why the value of the last expression has no JSON
	Error      *guestError     `json:"error"`
	Logs       []evaluationLog `json:"logs"`
	Calls      []call          `json:"calls"`
	DurationMs float64         `json:"durationMs"`
	Cause      runtime.Cause   `json:"cause"`
	Usage      usage           `json:"usage"`
}

type evaluationLog struct {
	Level runtime.LogLevel `json:"level"`
	Text  string           `json:"text"`
	MS    float64          `json:"ms"`
}

type call struct {
	Name           string  `json:"name"`
	MS             float64 `json:"ms"`
	ArgumentsBytes int     `json:"argumentsBytes"`
	ResultBytes    int     `json:"resultBytes"`
	Error          string  `json:"error"`
}

// NewEvaluation converts an evaluation.
func NewEvaluation(e *runtime.Evaluation) *Evaluation {
	o := &Evaluation{
		Result: e.Result, NoResult: e.NoResult, Error: newGuestError(e.Error, true), Logs: []evaluationLog{}, Calls: []call{},
		DurationMs: Milliseconds(e.Duration), Cause: e.Cause, Usage: newUsage(e.Usage),
	}
	for _, l := range e.Logs {
		o.Logs = append(o.Logs, evaluationLog{l.Level, l.Text, Milliseconds(l.At.Round(time.Microsecond))})
	}
	for _, c := range e.Calls {
		o.Calls = append(o.Calls, call{c.Name, Milliseconds(c.Duration), c.Arguments, c.Result, c.Error})
	}
	return o
}

// Milliseconds keeps three decimals: the rest is noise.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// JSON writes v to standard output as one line. It encodes all of v first, so that
// a consumer sees an object or nothing.
func JSON(stdout io.Writer, v any) error {
	line, err := Line(v)
	if err != nil {
		return err
	}
	return Stdout(stdout, line)
}

// Line returns v as one line of JSON. It does not escape <, > and &, which are
// frequent in stack traces.
func Line(v any) (string, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return line.String(), err
}
