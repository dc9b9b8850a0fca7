package service

import (
	"context"
	"fmt"

	"gaol/runtime"
	"gaol/runtime/resultjson"
)

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
	EventEnd     EventName = "end"     // nothing: a guest's server sends no more
	EventResult  EventName = "result"  // *runtime.Result or *runtime.Evaluation
	EventError   EventName = "error"   // error
)

// Sink receives the events of a run, in order. A slow sink slows down the run, and an error cancels
// it.
type Sink func(Event) error

// deliver passes the events of a stream to a sink. An error of the sink cancels the run, whose result so far is
// beside the error.
func deliver(s *runtime.Stream, to Sink) (exit runtime.ExitEvent) {
	var t translator
	var failed error
	for e := range s.Events() {
		for _, event := range t.events(e) {
			if failed == nil {
				failed = to(event)
			}
		}
		if failed != nil {
			break // which waits for the end of the run
		}
	}
	exit.Result, exit.Err = s.Result()
	exit.Evaluation, _ = s.Evaluation() // it returns the same error
	if failed != nil {
		exit.Err = fmt.Errorf("%w: %w", context.Canceled, failed)
	}
	return exit
}

// translator converts the events of one run.
type translator struct{ stdout, stderr resultjson.Splitter }

// events returns the events for clients that e leads to. The last one, a [runtime.ExitEvent], leads
// to the rest of the output.
func (t *translator) events(e runtime.Event) []Event {
	switch e := e.(type) {
	case runtime.StdoutEvent:
		return outputs(EventStdout, t.stdout.Split(e.Data))
	case runtime.StderrEvent:
		return outputs(EventStderr, t.stderr.Split(e.Data))
	case runtime.ExitEvent:
		return append(outputs(EventStdout, t.stdout.End()), outputs(EventStderr, t.stderr.End())...)
	}
	if name, data := resultjson.NewEvent(e); name != "" {
		return []Event{{Name: EventName(name), Data: data}}
	}
	return nil
}

func outputs(name EventName, pieces []resultjson.Output) (events []Event) {
	for _, piece := range pieces {
		events = append(events, Event{Name: name, Data: piece})
	}
	return events
}
