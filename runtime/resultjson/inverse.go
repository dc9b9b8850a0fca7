package resultjson

import (
	"fmt"
	"time"

	"gaol/runtime"
)

// Result converts a run back. Queued and Calls are not part of it.
func (r *Run) Result() *runtime.Result {
	res := &runtime.Result{
		Stdout:   original(r.Stdout, r.StdoutBytes),
		Stderr:   original(r.Stderr, r.StderrBytes),
		ExitCode: r.ExitCode,
		Signal:   r.Signal,
		Cause:    r.Cause,
		Value:    r.Value,
		Error:    r.Error.guestError(),
		Duration: fromMilliseconds(r.DurationMs),
		Usage:    r.Usage.Usage(),

		LauncherReason: r.LauncherReason,
	}
	if len(r.Denials) > 0 {
		res.Denials = r.Denials
	}
	res.Truncated.Stdout, res.Truncated.Stderr, res.Truncated.Denials = r.Truncated.Stdout, r.Truncated.Stderr, r.Truncated.Denials
	for _, l := range []runtime.Launcher{runtime.LauncherZygote, runtime.LauncherExec} {
		if l.String() == r.Launcher {
			res.Launcher = l
		}
	}
	return res
}

// original returns the bytes of an output.
func original(text string, bytes []byte) []byte {
	if bytes != nil {
		return bytes
	}
	return []byte(text)
}

// Evaluation converts an evaluation back.
func (e *Evaluation) Evaluation() *runtime.Evaluation {
	converted := &runtime.Evaluation{
		Result: e.Result, NoResult: e.NoResult, Error: e.Error.guestError(),
		Duration: fromMilliseconds(e.DurationMs), Cause: e.Cause, Usage: e.Usage.Usage(),
		Truncated: struct{ Logs, Calls, Denials bool }(e.Truncated),
	}
	if len(e.Denials) > 0 {
		converted.Denials = e.Denials
	}
	for _, l := range e.Logs {
		converted.Logs = append(converted.Logs, l.log())
	}
	for _, c := range e.Calls {
		converted.Calls = append(converted.Calls, c.call())
	}
	return converted
}

func (l Log) log() runtime.Log {
	return runtime.Log{Level: l.Level, Text: l.Text, At: fromMilliseconds(l.MS)}
}

func (c Call) call() runtime.Call {
	return runtime.Call{Name: c.Name, Duration: fromMilliseconds(c.MS), Arguments: c.ArgumentsBytes, Result: c.ResultBytes, Error: c.Error}
}

func (e *GuestError) guestError() *runtime.GuestError {
	if e == nil {
		return nil
	}
	converted := &runtime.GuestError{Name: e.Name, Message: e.Message, Stack: e.Stack, Code: e.Code, Properties: e.Properties, Cause: e.Cause.guestError(), Denied: e.Denied}
	for _, inner := range e.Errors {
		converted.Errors = append(converted.Errors, inner.guestError())
	}
	if e.Frame != nil {
		converted.Frame = *e.Frame
	}
	return converted
}

// Usage converts back what a run has used.
func (u Usage) Usage() runtime.Usage {
	converted := runtime.Usage{CPU: fromMilliseconds(u.CPUMs), PeakMemory: u.PeakMemoryBytes, PeakPids: u.Pids}
	if u.Network != nil {
		converted.Network = runtime.NetworkUsage(*u.Network)
	}
	return converted
}

func fromMilliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Microsecond)
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Text) UnmarshalText(text []byte) error {
	*t = append(Text{}, text...)
	return nil
}

// errUnknown is the error for an event of a kind that this version does not have.
func errUnknown(kind string) error { return fmt.Errorf("unknown event %q", kind) }
