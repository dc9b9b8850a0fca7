package client

import (
	"context"
	"errors"
	"iter"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/internal/stdio"
)

// Stream is a run with events, as [runtime.Stream] is. If the caller takes no events, the client buffers 64 KiB, the server
// 256 KiB of each output, and then the run blocks.
type Stream struct {
	feed   *stdio.Feed[runtime.Event]
	cancel context.CancelCauseFunc
	done   chan struct{}
	exit   runtime.ExitEvent
}

// FollowRun is Run with events, as [runtime.NodeRuntime.FollowRun] is.
func (sb *Sandbox) FollowRun(ctx context.Context, code string, o runtime.RunOptions) *Stream {
	return sb.followRun(ctx, "run", sb.programIn("runIn", code, o))
}

// FollowExec is FollowRun for Exec.
func (sb *Sandbox) FollowExec(ctx context.Context, code string, o runtime.RunOptions) *Stream {
	return sb.followRun(ctx, "exec", sb.programIn("execIn", code, o))
}

// FollowCommand is FollowRun for Command.
func (sb *Sandbox) FollowCommand(ctx context.Context, name string, args []string, o runtime.RunOptions) *Stream {
	return sb.followRun(ctx, "command", sb.commandIn(name, args, o))
}

func (sb *Sandbox) followRun(ctx context.Context, doing string, p pending) *Stream {
	p.Events = true
	return newStream(ctx, func(ctx context.Context, handle func(session.Frame)) (exit runtime.ExitEvent) {
		o := p.options
		err := checkRun(o)
		if err == nil && (o.OnStdout != nil || o.OnStderr != nil) {
			err = &runtime.OptionError{Option: "OnStdout", Err: errors.New("a stream has events instead")}
		}
		if err != nil {
			return runtime.ExitEvent{Err: wrap(doing, err)}
		}
		exit.Result, exit.Err = sb.c.follow(ctx, doing, p, handle)
		return exit
	})
}

// FollowEvaluate is FollowRun for Evaluate.
func (sb *Sandbox) FollowEvaluate(ctx context.Context, code string, o runtime.EvaluateOptions) *Stream {
	return newStream(ctx, func(ctx context.Context, handle func(session.Frame)) (exit runtime.ExitEvent) {
		if o.OnLog != nil {
			return runtime.ExitEvent{Err: wrap("evaluate", &runtime.OptionError{Option: "OnLog", Err: errors.New("a stream has events instead")})}
		}
		exit.Evaluation, exit.Err = sb.c.evaluate(ctx, code, o, sb.snippetIn, handle)
		return exit
	})
}

// newStream starts a run in the background.
func newStream(ctx context.Context, run func(context.Context, func(session.Frame)) runtime.ExitEvent) *Stream {
	s := &Stream{feed: stdio.NewFeed[runtime.Event](), done: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
	context.AfterFunc(ctx, s.feed.End)
	go func() {
		defer s.cancel(nil)
		s.exit = run(ctx, func(f session.Frame) { s.put(ctx, f) })
		s.feed.Close(s.exit)
		close(s.done)
	}()
	return s
}

// put appends the event of a frame when there is room. When the run is canceled, events are dropped.
func (s *Stream) put(ctx context.Context, f session.Frame) {
	var e runtime.Event
	switch f.Kind {
	case session.KindStdout:
		e = runtime.StdoutEvent{Data: f.Body}
	case session.KindStderr:
		e = runtime.StderrEvent{Data: f.Body}
	default:
		var err error
		if e, err = decodeEvent(f); err != nil {
			return // an event of a newer server
		}
	}
	s.feed.WaitForRoom()
	if ctx.Err() == nil {
		s.feed.Put(e, stdio.EventWeight+len(f.Body))
	}
}

// Events returns the run's events, up to and including its ExitEvent. Breaking out of the range
// ends the run, and waits for its end.
func (s *Stream) Events() iter.Seq[runtime.Event] {
	return func(yield func(runtime.Event) bool) {
		complete := false
		defer func() {
			if !complete { // or the receiver has panicked
				s.cancel(context.Canceled)
				<-s.done
			}
		}()
		complete = s.feed.All(yield)
	}
}

// Result waits for the end of the run. It does not take events: another goroutine must.
func (s *Stream) Result() (*runtime.Result, error) {
	<-s.done
	return s.exit.Result, s.exit.Err
}

// Evaluation is Result for FollowEvaluate.
func (s *Stream) Evaluation() (*runtime.Evaluation, error) {
	<-s.done
	return s.exit.Evaluation, s.exit.Err
}
