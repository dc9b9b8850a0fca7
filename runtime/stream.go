package runtime

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"time"

	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/stdio"
)

// Event is something that a run did, as [Stream] and [Process.Events] report it: a
// StdoutEvent, StderrEvent, LogEvent, CallEvent, ConnectEvent, DenialEvent or, as the last
// one, an ExitEvent.
type Event interface{ event() }

// StdoutEvent is a piece of the run's standard output. Pieces end at arbitrary bytes. On a
// terminal it is all that the terminal shows.
type StdoutEvent struct {
	Data []byte // valid until the next event is requested
}

// StderrEvent is a piece of the run's standard error.
type StderrEvent struct {
	Data []byte // valid until the next event is requested
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

// ExitEvent is the end of the run, and of its events. A run that could not begin has one,
// too.
type ExitEvent struct {
	Result     *Result     // without output, which the events have
	Evaluation *Evaluation // instead of a Result, if a snippet was evaluated

	// Err is the error of Run, Evaluate or Process.Wait. If the run was canceled, there is a
	// Result or an Evaluation beside it.
	Err error
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

// Stream is a run with events.
//
// Output becomes events and is not kept: the Result has none, and with KillOnOutput
// Limits.Output bounds the total output of the run. If the caller takes no events, or has not
// begun to range over them, the run blocks as soon as the kernel holds 64 KiB of an output, or 1
// MiB of a busy one. It still ends by its Timeout, its context, or its runtime's Close. Earlier
// output can be read afterwards, too.
type Stream struct {
	feed   *feed
	cancel context.CancelFunc

	done chan struct{}
	exit ExitEvent
}

// FollowRun is [NodeRuntime.Run] with events, which the caller receives during the run. It does
// not wait: if the run cannot begin, the ExitEvent and [Stream.Result] have the error. OnStdout
// and OnStderr are an error.
//
// Standard output and standard error are two pipes without a common order: see
// [Stream.Events]. A program whose outputs must stay in order prints to one of them, for
// example by "2>&1" in a shell, or uses a terminal ([NodeRuntime.Spawn]).
//
//	s := rt.FollowRun(ctx, code, runtime.RunOptions{})
//	for e := range s.Events() {
//		switch e := e.(type) {
//		case runtime.StdoutEvent:
//			os.Stdout.Write(e.Data)
//		case runtime.DenialEvent:
//			log.Println("denied:", e.Denial.Rule, e.Denial.Target)
//		}
//	}
//	res, err := s.Result()
func (rt *NodeRuntime) FollowRun(ctx context.Context, code string, o RunOptions) *Stream {
	return rt.followRun(ctx, "run", rt.code(code), o)
}

// FollowExec is FollowRun for [NodeRuntime.Exec].
func (rt *NodeRuntime) FollowExec(ctx context.Context, code string, o RunOptions) *Stream {
	return rt.followRun(ctx, "exec", &Process{code: &guest.Program{Code: code}}, o)
}

// FollowCommand is FollowRun for [NodeRuntime.Command].
func (rt *NodeRuntime) FollowCommand(ctx context.Context, name string, args []string, o RunOptions) *Stream {
	return rt.followRun(ctx, "command", imageProgram(name, args), o)
}

// FollowEvaluate is FollowRun for [NodeRuntime.Evaluate]. Everything that the snippet prints
// becomes LogEvents. They may include more of what Node prints before it aborts than
// Evaluation.Logs has.
func (rt *NodeRuntime) FollowEvaluate(ctx context.Context, code string, o EvaluateOptions) *Stream {
	return rt.follow(ctx, "evaluate", func(ctx context.Context, f *feed) (exit ExitEvent) {
		exit.Evaluation, exit.Err = rt.evaluate(ctx, code, o, f)
		return exit
	})
}

func (rt *NodeRuntime) followRun(ctx context.Context, method string, p *Process, o RunOptions) *Stream {
	return rt.follow(ctx, method, func(ctx context.Context, f *feed) (exit ExitEvent) {
		if o.OnStdout != nil || o.OnStderr != nil {
			exit.Err = errors.New("options OnStdout and OnStderr: a run that is followed has events")
			return exit
		}
		exit.Result, exit.Err = rt.run(ctx, p, o, f)
		return exit
	})
}

// follow returns a stream of the run that perform makes, whose events go to f.
func (rt *NodeRuntime) follow(ctx context.Context, method string, perform func(ctx context.Context, f *feed) ExitEvent) *Stream {
	reserved := rt.calls.begin()
	return NewStream(ctx, func(ctx context.Context, f *feed) (exit ExitEvent) {
		if !reserved {
			exit.Err = ErrClosed
		} else {
			defer rt.calls.open.Done()
			exit = perform(ctx, f)
		}
		wrap(&exit.Err, method)
		return exit
	})
}

// NewStream returns a stream of the run that perform makes in the background, whose events go to f. Package client
// makes streams of runs on a server.
func NewStream(ctx context.Context, perform func(ctx context.Context, f *stdio.Feed[Event]) ExitEvent) *Stream {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{feed: stdio.NewFeed[Event](), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.exit = perform(ctx, s.feed)
		cancel()
		s.feed.Close(s.exit)
	}()
	return s
}

// Events returns the run's events, up to and including its ExitEvent. The order is exact
// within each output, within logs, and within calls. Across them it is the order in which
// this process received them: events of both outputs within a few milliseconds, or while the
// receiver is busy, may be swapped.
//
// Breaking out of the range ends the run with CauseCanceled, and waits for its end. Result
// then returns context.Canceled. Ranging again yields the remaining events. If two goroutines
// range concurrently, the second gets nothing.
//
// The receiver may use the runtime meanwhile, and may be slow. It must not wait for
// anything that the run does next, except for the next event.
func (s *Stream) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		complete := false
		defer func() {
			if !complete { // or the receiver has panicked
				s.cancel()
				<-s.done
			}
		}()
		complete = s.feed.All(yield)
	}
}

// Result waits for the end of the run, and returns what its ExitEvent has. It does not take
// events: another goroutine must.
func (s *Stream) Result() (*Result, error) {
	<-s.done
	return s.exit.Result, s.exit.Err
}

// Evaluation is Result for FollowEvaluate.
func (s *Stream) Evaluation() (*Evaluation, error) {
	<-s.done
	return s.exit.Evaluation, s.exit.Err
}
