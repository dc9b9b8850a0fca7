package runtime

import (
	"net/netip"
	"time"

	"gaol/runtime/internal/stdio"
)

// Event is something that a run did, as RunOptions.OnEvent and [Process.Events] report it: a
// StdoutEvent, StderrEvent, LogEvent, CallEvent, ConnectEvent or DenialEvent. The last event of
// a Process is an ExitEvent.
type Event interface{ event() }

// StdoutEvent is a piece of the run's standard output. Pieces end at arbitrary bytes. On a
// terminal it is all that the terminal shows.
type StdoutEvent struct {
	Data []byte // valid until the next event
}

// StderrEvent is a piece of the run's standard error.
type StderrEvent struct {
	Data []byte // valid until the next event
}

// LogEvent is a line that a snippet printed, as in Evaluation.Logs.
type LogEvent struct{ Log Log }

// CallEvent is a call of a host function that has returned, or that the run's end has cut
// off.
type CallEvent struct{ Call Call }

// ConnectEvent is a connection to an external host that has ended, that the run's end has closed,
// or whose server could not be reached. A denied connection is a DenialEvent.
type ConnectEvent struct{ Connection Connection }

// Connection is a TCP connection to an external host.
type Connection struct {
	Host     string         `json:"host"`    // the name that the guest has looked up; "" if it used an address
	Address  netip.AddrPort `json:"address"` // the server's; one of the guest's resolver if the server was not reached
	Port     uint16         `json:"port"`
	Rule     string         `json:"rule"`     // the rule that allowed it, such as "network.rules[2]" or "network.default"
	BytesIn  int64          `json:"bytesIn"`  // from the server
	BytesOut int64          `json:"bytesOut"` // to the server
	Duration time.Duration  `json:"durationMs"`

	// Outcome is "closed", or why the connection failed: "refused" by the server,
	// "unreachable" (no route, or the name does not resolve), "timeout" (the server did not
	// accept it in time), or "failed" (reset).
	Outcome string `json:"outcome" enum:"closed,refused,unreachable,timeout,failed"`
}

// DenialEvent is an operation that the run's permissions denied, when it occurs for the first
// time: its Count is 1. It is not sent for denials that Result.Denials truncates. Denials from
// the kernel's audit log or from standard error arrive when they become known, mostly just
// before the end.
type DenialEvent struct{ Denial Denial }

// ExitEvent is the end of a spawned process, and of its events: what [Process.Wait] returns.
type ExitEvent struct {
	Result *Result // without output, which the events have
	Err    error
}

func (StdoutEvent) event()  {}
func (StderrEvent) event()  {}
func (LogEvent) event()     {}
func (CallEvent) event()    {}
func (ConnectEvent) event() {}
func (DenialEvent) event()  {}
func (ExitEvent) event()    {}

// feed passes the events of a run to its follower.
type feed = stdio.Feed[Event]

// followStdout and followStderr return sinks that make output events. Each has its own buffers,
// so that one output cannot block the other.
func followStdout(f *feed, limit int64, onLimit func()) stdio.Sink {
	return &stdio.EventSink[Event]{Feed: f, Event: func(b []byte) Event { return StdoutEvent{b} }, Limit: limit, OnLimit: onLimit}
}

func followStderr(f *feed, limit int64, onLimit func()) stdio.Sink {
	return &stdio.EventSink[Event]{Feed: f, Event: func(b []byte) Event { return StderrEvent{b} }, Limit: limit, OnLimit: onLimit}
}
