package client

import (
	"context"
	"errors"
	"iter"
	"sync"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// Stream is a run with events, as [runtime.Stream] is. If the caller takes no events, the server
// buffers 256 KiB of each output, and then the run blocks.
type Stream struct {
	cancel context.CancelCauseFunc
	frames chan event
	done   chan struct{}
	exit   runtime.ExitEvent

	mu      sync.Mutex
	stopped chan struct{} // closed when events are no longer wanted
	stop    func()
}

// event is an event that waits for the caller.
type event struct {
	runtime.Event
	taken chan struct{} // closed when the caller requests the next one
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
		n, m, release, err := sb.c.snippet("evaluateIn", code, o)
		if err != nil {
			return runtime.ExitEvent{Err: wrap("evaluate", err)}
		}
		defer release()
		m.Events, m.in = true, requestjson.SnippetIn{InSandbox: sb.in(), Snippet: n}
		exit.Evaluation, exit.Err = sb.c.followEvaluate(ctx, m, handle)
		return exit
	})
}

// newStream starts a run in the background.
func newStream(ctx context.Context, run func(context.Context, func(session.Frame)) runtime.ExitEvent) *Stream {
	s := &Stream{frames: make(chan event), done: make(chan struct{}), stopped: make(chan struct{})}
	s.stop = sync.OnceFunc(func() { close(s.stopped) })
	ctx, s.cancel = context.WithCancelCause(ctx)
	go func() {
		defer s.cancel(nil)
		s.exit = run(ctx, func(f session.Frame) { s.offer(ctx, f) })
		close(s.done)
	}()
	return s
}

// offer waits until the caller has taken the event of a frame. When the run is canceled, events
// without a receiver are dropped.
func (s *Stream) offer(ctx context.Context, f session.Frame) {
	e := event{taken: make(chan struct{})}
	switch f.Kind {
	case session.KindStdout:
		e.Event = runtime.StdoutEvent{Data: f.Body}
	case session.KindStderr:
		e.Event = runtime.StderrEvent{Data: f.Body}
	default:
		decoded, err := decodeEvent(f)
		if err != nil {
			return // an event of a newer server
		}
		e.Event = decoded
	}
	select {
	case s.frames <- e:
		<-e.taken
	case <-ctx.Done():
	case <-s.stopped:
	}
}

// Events returns the run's events, up to and including its ExitEvent. Breaking out of the range
// ends the run, and waits for its end.
func (s *Stream) Events() iter.Seq[runtime.Event] {
	return func(yield func(runtime.Event) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for {
			select {
			case e := <-s.frames:
				more := yield(e.Event)
				close(e.taken)
				if !more {
					s.cancel(context.Canceled)
					s.stop()
					<-s.done
					return
				}
			case <-s.done:
				yield(s.exit)
				return
			}
		}
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
