package service

import (
	"context"
	"fmt"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Event is an event of a run or a process, as clients get it.
type Event struct {
	ID   uint64 // its number in a process; 0 in a run
	Name EventName
	Data any // of the type that the name says
}

// EventName says which kind of event it is.
type EventName string

// The names, with the types of their data. A run ends with EventResult, or with EventError if the
// server could not run it. These two are the caller's to send, except for a [Process].
const (
	EventStdout  EventName = "stdout"  // resultjson.Output
	EventStderr  EventName = "stderr"  // resultjson.Output
	EventLog     EventName = "log"     // resultjson.Log
	EventCall    EventName = "call"    // resultjson.Call
	EventConnect EventName = "connect" // resultjson.Connection
	EventDenial  EventName = "denial"  // runtime.Denial
	EventGap     EventName = "gap"     // Gap
	EventResult  EventName = "result"  // *resultjson.Run or *resultjson.Evaluation
	EventError   EventName = "error"   // error
)

// Sink receives the events of a run, in order. A slow sink slows down the run, and an error cancels
// it.
type Sink func(Event) error

// FollowRun is Run with events.
func (s *Service) FollowRun(ctx context.Context, t *tenant.Tenant, r RunRequest, to Sink) (*resultjson.Run, error) {
	permissions := r.Permissions
	r.Permissions = nil // they are the sandbox's
	return once(ctx, s, t, r.Tree, permissions, r.Cwd, func(ctx context.Context, sb *Sandbox) (*resultjson.Run, error) {
		return sb.FollowRun(ctx, r.Program, to)
	})
}

// FollowEvaluate is Evaluate with events.
func (s *Service) FollowEvaluate(ctx context.Context, t *tenant.Tenant, r EvaluateRequest, to Sink) (*resultjson.Evaluation, error) {
	permissions := r.Permissions
	r.Permissions = nil
	return once(ctx, s, t, r.Tree, permissions, r.Cwd, func(ctx context.Context, sb *Sandbox) (*resultjson.Evaluation, error) {
		return sb.FollowEvaluate(ctx, r.Snippet, to)
	})
}

// FollowRun is Run with events. They have the output, which the result then lacks.
func (sb *Sandbox) FollowRun(ctx context.Context, p Program, to Sink) (*resultjson.Run, error) {
	o, err := sb.programOptions(p)
	if err != nil {
		return nil, err
	}
	recordCode(ctx, p.Code, p.Permissions)
	return sb.followRun(ctx, KindRun, to, func(ctx context.Context) *runtime.Stream { return sb.NodeRuntime.FollowRun(ctx, p.Code, o) })
}

// FollowExec is Exec with events.
func (sb *Sandbox) FollowExec(ctx context.Context, p Program, to Sink) (*resultjson.Run, error) {
	o, err := sb.programOptions(p)
	if err != nil {
		return nil, err
	}
	recordCode(ctx, p.Code, p.Permissions)
	return sb.followRun(ctx, KindExec, to, func(ctx context.Context) *runtime.Stream { return sb.NodeRuntime.FollowExec(ctx, p.Code, o) })
}

// FollowCommand is Command with events.
func (sb *Sandbox) FollowCommand(ctx context.Context, c Command, to Sink) (*resultjson.Run, error) {
	o, err := sb.runOptions(c.Permissions, c.Env, c.Cwd, c.Stdin, c.TimeoutMs)
	if err != nil {
		return nil, err
	}
	recordCommand(ctx, c.Command, c.Args, c.Permissions)
	return sb.followRun(ctx, KindCommand, to, func(ctx context.Context) *runtime.Stream {
		return sb.NodeRuntime.FollowCommand(ctx, c.Command, c.Args, o)
	})
}

// FollowEvaluate is Evaluate with events. The evaluation has its logs, too.
func (sb *Sandbox) FollowEvaluate(ctx context.Context, n Snippet, to Sink) (*resultjson.Evaluation, error) {
	o, err := sb.evaluateOptions(n)
	if err != nil {
		return nil, err
	}
	recordCode(ctx, n.Code, n.Permissions)
	exit, err := sb.follow(ctx, doing[KindEvaluate], to, func(ctx context.Context) *runtime.Stream { return sb.NodeRuntime.FollowEvaluate(ctx, n.Code, o) })
	sb.service.recordEvaluation(ctx, KindEvaluate, exit.Evaluation, err)
	if err != nil {
		return nil, err
	}
	return resultjson.NewEvaluation(exit.Evaluation), nil
}

// programOptions returns the options of a program.
func (sb *Sandbox) programOptions(p Program) (runtime.RunOptions, error) {
	o, err := sb.runOptions(p.Permissions, p.Env, p.Cwd, p.Stdin, p.TimeoutMs)
	o.Name, o.Format, o.Args = p.Name, formats[p.Format], p.Args
	return o, err
}

func (sb *Sandbox) followRun(ctx context.Context, kind string, to Sink, start func(context.Context) *runtime.Stream) (*resultjson.Run, error) {
	exit, err := sb.follow(ctx, doing[kind], to, start)
	sb.service.recordRun(ctx, kind, exit.Result, err)
	if err != nil {
		return nil, err
	}
	return resultjson.NewRun(exit.Result), nil
}

// follow passes the events of a run to a sink, and returns how it ended.
func (sb *Sandbox) follow(ctx context.Context, doing string, to Sink, start func(context.Context) *runtime.Stream) (exit runtime.ExitEvent, err error) {
	err = sb.admitted(ctx, doing, func(ctx context.Context) (err error) {
		exit, err = deliver(start(ctx), to)
		return err
	})
	return exit, err
}

// deliver passes the events of a stream to a sink.
func deliver(s *runtime.Stream, to Sink) (exit runtime.ExitEvent, err error) {
	var t translator
	for e := range s.Events() {
		last, over := e.(runtime.ExitEvent)
		for _, event := range t.events(e) {
			if err := to(event); err != nil { // the return cancels the run, and waits for its end
				return exit, fmt.Errorf("%w: %w", context.Canceled, err)
			}
		}
		if over {
			exit = last
		}
	}
	return exit, exit.Err
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
	case runtime.LogEvent:
		return []Event{{Name: EventLog, Data: resultjson.NewLog(e.Log)}}
	case runtime.CallEvent:
		return []Event{{Name: EventCall, Data: resultjson.NewCall(e.Call)}}
	case runtime.ConnectEvent:
		return []Event{{Name: EventConnect, Data: resultjson.NewConnection(e.Connection)}}
	case runtime.DenialEvent:
		return []Event{{Name: EventDenial, Data: e.Denial}}
	}
	return append(outputs(EventStdout, t.stdout.End()), outputs(EventStderr, t.stderr.End())...)
}

func outputs(name EventName, pieces []resultjson.Output) (events []Event) {
	for _, piece := range pieces {
		events = append(events, Event{Name: name, Data: piece})
	}
	return events
}
