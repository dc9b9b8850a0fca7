package resultjson

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"gaol/runtime"
)

// Result converts a run back.
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
	res.Queued = fromMilliseconds(r.QueuedMs)
	for _, c := range r.Calls {
		res.Calls = append(res.Calls, c.call())
	}
	res.Truncated.Stdout, res.Truncated.Stderr, res.Truncated.Denials, res.Truncated.Calls = r.Truncated.Stdout, r.Truncated.Stderr, r.Truncated.Denials, r.Truncated.Calls
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
		Value: e.Value, NoValue: e.NoValue, Error: e.Error.guestError(),
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

// Usage converts the usage of a run back.
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

// NewEvent converts an event of a run other than its output and its end. The name is empty for others.
func NewEvent(e runtime.Event) (name string, data any) {
	switch e := e.(type) {
	case runtime.LogEvent:
		return "log", NewLog(e.Log)
	case runtime.CallEvent:
		return "call", NewCall(e.Call)
	case runtime.ConnectEvent:
		return "connect", NewConnection(e.Connection)
	case runtime.DenialEvent:
		return "denial", e.Denial
	}
	return "", nil
}

// Event decodes an event of a run other than its output. It fails if this version does not know the event.
func Event(name string, data []byte) (e runtime.Event, err error) {
	switch name {
	case "log":
		var l Log
		err = json.Unmarshal(data, &l)
		e = runtime.LogEvent{Log: l.log()}
	case "call":
		var c Call
		err = json.Unmarshal(data, &c)
		e = runtime.CallEvent{Call: c.call()}
	case "denial":
		var d runtime.Denial
		err = json.Unmarshal(data, &d)
		e = runtime.DenialEvent{Denial: d}
	case "connect":
		var c Connection
		err = json.Unmarshal(data, &c)
		e = runtime.ConnectEvent{Connection: c.connection()}
	default:
		err = fmt.Errorf("unknown event %q", name)
	}
	return e, err
}

// connection converts a connection back.
func (c Connection) connection() runtime.Connection {
	address, _ := netip.ParseAddrPort(c.Address) // empty if it is unknown
	return runtime.Connection{
		Host: c.Host, Address: address, Port: uint16(c.Port), Rule: c.Rule, BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		Duration: fromMilliseconds(c.DurationMs), Outcome: c.Outcome,
	}
}
