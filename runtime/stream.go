package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Stream is a run that is followed while it goes on.
//
// What the run prints goes by as events, and is not kept: its Result has no output, and
// with KillOnOutput Limits.Output is what it may print. Who takes no event has the run
// wait, as soon as the kernel holds 64 KiB of an output, or 1 MiB of one that is much used,
// and so does who has not begun to range. It still ends by its Timeout, its context,
// or its runtime's Close; what it printed before that can be had afterwards, too.
type Stream struct {
	feed   *feed
	cancel context.CancelFunc

	done chan struct{}
	exit ExitEvent
}

// FollowRun is [NodeRuntime.Run] for who wants to see what the run does at once. It does
// not wait: also why a run could not begin is told by the ExitEvent, and by
// [Stream.Result]. OnStdout and OnStderr are an error.
//
// Standard output and standard error are two pipes, which keep no common order: see
// [Stream.Events]. A program whose outputs must stay in order prints to one of them, as by
// "2>&1" of a shell, or has a terminal ([NodeRuntime.Spawn]).
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
	return rt.followTask(ctx, "run", o, func() (*task, error) { return rt.opts.nodeTask(code, o, true) })
}

// FollowExec is FollowRun for [NodeRuntime.Exec].
func (rt *NodeRuntime) FollowExec(ctx context.Context, code string, o RunOptions) *Stream {
	return rt.followTask(ctx, "exec", o, func() (*task, error) { return rt.opts.nodeTask(code, o, false) })
}

// FollowCommand is FollowRun for [NodeRuntime.Command].
func (rt *NodeRuntime) FollowCommand(ctx context.Context, name string, args []string, o RunOptions) *Stream {
	return rt.followTask(ctx, "command", o, func() (*task, error) { return rt.opts.commandTask(name, args, o) })
}

// FollowEvaluate is FollowRun for [NodeRuntime.Evaluate]. All that the snippet prints
// comes as LogEvents, which may have more of what Node prints when it gives up than
// Evaluation.Logs has.
func (rt *NodeRuntime) FollowEvaluate(ctx context.Context, code string, o EvaluateOptions) *Stream {
	return rt.follow(ctx, "evaluate", func(ctx context.Context, f *feed) (ExitEvent, error) {
		e, err := rt.evaluate(ctx, code, o, f)
		return ExitEvent{Evaluation: e}, err
	})
}

func (rt *NodeRuntime) followTask(ctx context.Context, what string, o RunOptions, lower func() (*task, error)) *Stream {
	return rt.follow(ctx, what, func(ctx context.Context, f *feed) (ExitEvent, error) {
		if o.OnStdout != nil || o.OnStderr != nil {
			return ExitEvent{}, errors.New("options OnStdout and OnStderr: a run that is followed has events")
		}
		t, err := lower()
		if err != nil {
			return ExitEvent{}, err
		}
		t.feed = f
		res, err := rt.do(ctx, t, o)
		return ExitEvent{Result: res}, err
	})
}

// follow makes a stream of what perform does, whose run is to get f.
func (rt *NodeRuntime) follow(ctx context.Context, what string, perform func(ctx context.Context, f *feed) (ExitEvent, error)) *Stream {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{feed: newFeed(), cancel: cancel, done: make(chan struct{})}
	if !rt.live.spawn() {
		s.end(ExitEvent{Err: fmt.Errorf("gaol: %s: %w", what, ErrClosed)})
		return s
	}
	go func() {
		defer rt.live.spawned.Done()
		var exit ExitEvent
		_, exit.Err = rt.named(what, func() (_ *Result, err error) {
			exit, err = perform(ctx, s.feed)
			return nil, err
		})
		s.end(exit)
	}()
	return s
}

func (s *Stream) end(exit ExitEvent) {
	s.exit = exit
	s.cancel()
	s.feed.close(exit)
	close(s.done)
}

// Events are what the run does, to be ranged over up to its ExitEvent. The order within
// each output, of logs, and of calls is exact; across them it is that in which this process
// came to know: what a program prints to both outputs within a few milliseconds, or while
// the receiver is busy, may change places.
//
// To break out of the range ends the run with CauseCanceled, and waits for that: Result has
// context.Canceled then.
// Ranging again gives what is left. Of two who range at once the later gets nothing.
//
// The receiver may do what it likes with the runtime meanwhile, and be slow. It must not wait
// for what the run does next, other than by the next event.
func (s *Stream) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		complete := false
		defer func() {
			if !complete { // or the receiver has panicked
				s.cancel()
				<-s.done
			}
		}()
		complete = s.feed.all(yield)
	}
}

// Result waits for the end of the run, and returns what its ExitEvent has. It takes no
// events: somebody has to.
func (s *Stream) Result() (*Result, error) {
	<-s.done
	return s.exit.Result, s.exit.Err
}

// Evaluation is Result for FollowEvaluate.
func (s *Stream) Evaluation() (*Evaluation, error) {
	<-s.done
	return s.exit.Evaluation, s.exit.Err
}
