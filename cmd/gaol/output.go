package main

import (
	"bytes"
	"encoding/json"
	"time"

	"gaol/runtime"
)

// output is the object that --json prints. Its shape is a promise to programs.
type output struct {
	// Stdout and Stderr are text: what isn't UTF-8 becomes U+FFFD.
	Stdout     string           `json:"stdout"`
	Stderr     string           `json:"stderr"`
	Output     []outputPiece    `json:"output,omitzero"` // both, in the order in which they were read; with --interleave
	ExitCode   int              `json:"exitCode"`
	Signal     string           `json:"signal"`
	Cause      runtime.Cause    `json:"cause"`
	Value      json.RawMessage  `json:"value,omitempty"` // absent when nothing was returned
	Error      *programError    `json:"error,omitempty"` // absent unless an uncaught error ended the program
	DurationMs float64          `json:"durationMs"`
	Usage      outputUsage      `json:"usage"`
	Truncated  outputTruncated  `json:"truncated"`
	Denials    []runtime.Denial `json:"denials"`

	// Launcher is the one that was used; LauncherReason is absent unless another was
	// asked for.
	Launcher       string `json:"launcher"`
	LauncherReason string `json:"launcherReason,omitempty"`
}

// programError is an error that a program did not catch.
type programError struct {
	Name       string                     `json:"name"`
	Message    string                     `json:"message"`
	Stack      string                     `json:"stack"`
	Code       string                     `json:"code,omitempty"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Cause      *programError              `json:"cause,omitempty"`
}

// newProgramError is nil for none.
func newProgramError(e *runtime.GuestError) *programError {
	if e == nil {
		return nil
	}
	return &programError{e.Name, e.Message, e.Stack, e.Code, e.Properties, newProgramError(e.Cause)}
}

type outputUsage struct {
	CPUMs           float64 `json:"cpuMs"`
	PeakMemoryBytes int64   `json:"peakMemoryBytes"`
	Pids            int64   `json:"pids"`
}

type outputTruncated struct {
	Stdout  bool `json:"stdout"`
	Stderr  bool `json:"stderr"`
	Denials bool `json:"denials"`
}

func newOutput(res *runtime.Result) *output {
	return &output{
		Stdout:     string(res.Stdout),
		Stderr:     string(res.Stderr),
		ExitCode:   res.ExitCode,
		Signal:     res.Signal,
		Cause:      res.Cause,
		Value:      res.Value,
		Error:      newProgramError(res.Error),
		DurationMs: milliseconds(res.Duration),
		Usage:      newOutputUsage(res.Usage),
		Truncated:  outputTruncated{res.Truncated.Stdout, res.Truncated.Stderr, res.Truncated.Denials},
		Denials:    append([]runtime.Denial{}, res.Denials...), // a list, also when there are none

		Launcher:       res.Launcher.String(),
		LauncherReason: res.LauncherReason,
	}
}

func newOutputUsage(u runtime.Usage) outputUsage {
	return outputUsage{CPUMs: milliseconds(u.CPU), PeakMemoryBytes: u.PeakMemory, Pids: u.PeakPids}
}

// milliseconds keeps three digits after the point: the rest is noise.
func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// printJSON prints v as one line. It is encoded before any of it is printed:
// a consumer sees an object or nothing.
func (a *app) printJSON(v any) error {
	text, err := marshalLine(v)
	if err != nil {
		return err
	}
	if _, err := a.stdout.Write(text); err != nil {
		return newOutputError("standard output", err)
	}
	return nil
}

func marshalLine(v any) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // this is no web page, and <> are frequent in stack traces
	err := enc.Encode(v)
	return line.Bytes(), err
}
