package service

import (
	"context"
	"encoding/json"
	"io"
	"syscall"

	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/strictjson"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Call is a tenant's request to perform an operation: a method of [Service], [Sandbox], [Process] or [Context] with a call
// and an input of package requestjson. The fields after Tenant may be zero.
type Call struct {
	Service *Service
	Tenant  *tenant.Tenant

	// Stdin replaces the standard input of the request.
	Stdin io.Reader

	// To receives the events of the run. They include its output, which the result then lacks.
	To Sink

	// OnOutput is called with each piece of the output of a run that To does not receive.
	OnOutput func([]byte)

	// BoundsLogs lets To bound the lines of an evaluation, instead of its request.
	BoundsLogs bool

	// Signals are sent to the run.
	Signals <-chan syscall.Signal

	// Bind adds functions of the client to the variables of a sandbox, a context or a snippet.
	// Commands are programs that the client implements. Calls bounds the calls of both.
	Bind     func(globals map[string]json.RawMessage) (map[string]any, error)
	Commands map[string]runtime.HostCommand
	Calls    runtime.CallLimits

	// Upload returns the data that the request carries, which fails after some bytes. Operations with
	// uploads need it.
	Upload func(ctx context.Context, maxBytes int64) (io.Reader, error)

	// Download returns a writer for data that is the result, such as the content of a file: see [Sandbox.ReadFile]. It
	// fails when ctx has ended.
	Download func(ctx context.Context) io.Writer

	// Session is nil by HTTP.
	Session  *Session
	Detached bool // sandboxes do not end with the session
}

// None is the output of operations without one.
type None struct{}

// bind returns variables as the SDK has them, with the client's functions.
func (c *Call) bind(values map[string]json.RawMessage) (map[string]any, error) {
	if c.Bind != nil {
		return c.Bind(values)
	}
	return strictjson.Values(values), nil
}

// Event is an event of a run or a process, as clients get it.
type Event struct {
	ID   uint64 // its number in a process; 0 in a run
	Name EventName
	Data any // of a type that depends on the name
}

// EventName is a kind of event.
type EventName string

// The names, with the types of their data. A run ends with EventResult, or with EventError if the
// server could not run it. These two are the caller's to send, except for a [Process].
const (
	EventStdout  EventName = "stdout"  // resultjson.Output
	EventStderr  EventName = "stderr"  // resultjson.Output
	EventLog     EventName = "log"     // runtime.Log
	EventCall    EventName = "call"    // runtime.Call
	EventConnect EventName = "connect" // runtime.Connection
	EventDenial  EventName = "denial"  // runtime.Denial
	EventGap     EventName = "gap"     // resultjson.Gap
	EventStarted EventName = "started" // *resultjson.ProcessInfo or *resultjson.ContextInfo, if the request lasts until its end
	EventState   EventName = "state"   // *resultjson.BatchRun
	EventEnd     EventName = "end"     // nothing: a guest's server sends no more
	EventResult  EventName = "result"  // *runtime.Result or *runtime.Evaluation
	EventError   EventName = "error"   // error
)

// Sink receives the events of a run, in order. A slow sink slows down the run, and an error cancels
// it.
type Sink func(Event) error

// translator converts the events of one run.
type translator struct{ stdout, stderr resultjson.Splitter }

// events returns the events for clients that e leads to.
func (t *translator) events(e runtime.Event) []Event {
	switch e := e.(type) {
	case runtime.StdoutEvent:
		return outputs(EventStdout, t.stdout.Split(e.Data))
	case runtime.StderrEvent:
		return outputs(EventStderr, t.stderr.Split(e.Data))
	case runtime.ExitEvent:
		return t.end()
	}
	if name, data := resultjson.NewEvent(e); name != "" {
		return []Event{{Name: EventName(name), Data: data}}
	}
	return nil
}

// end returns the rest of the output.
func (t *translator) end() []Event {
	return append(outputs(EventStdout, t.stdout.End()), outputs(EventStderr, t.stderr.End())...)
}

func outputs(name EventName, pieces []resultjson.Output) (events []Event) {
	for _, piece := range pieces {
		events = append(events, Event{Name: name, Data: piece})
	}
	return events
}
