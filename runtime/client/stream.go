package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/resultjson"
)

// FollowRun is Run with events, as [runtime.NodeRuntime.FollowRun] is. If the caller takes no events, the client
// buffers 64 KiB, the server 256 KiB of each output, and then the run blocks.
func (sb *Sandbox) FollowRun(ctx context.Context, code string, o runtime.RunOptions) *runtime.Stream {
	return sb.c.follow(ctx, sb.program("runIn", "run", code, o), o)
}

// FollowExec is FollowRun for Exec.
func (sb *Sandbox) FollowExec(ctx context.Context, code string, o runtime.RunOptions) *runtime.Stream {
	return sb.c.follow(ctx, sb.program("execIn", "exec", code, o), o)
}

// FollowCommand is FollowRun for Command.
func (sb *Sandbox) FollowCommand(ctx context.Context, name string, args []string, o runtime.RunOptions) *runtime.Stream {
	return sb.c.follow(ctx, sb.command(name, args, o), o)
}

func (c *Client) follow(ctx context.Context, m message, o runtime.RunOptions) *runtime.Stream {
	return followed(ctx, m, func(ctx context.Context, m message) (exit runtime.ExitEvent) {
		if o.OnStdout != nil || o.OnStderr != nil {
			exit.Err = wrap(m.doing, &runtime.OptionError{Option: "OnStdout", Err: errors.New("a stream has events instead")})
			return exit
		}
		exit.Result, exit.Err = c.perform(ctx, m, o)
		return exit
	})
}

// FollowEvaluate is FollowRun for Evaluate.
func (sb *Sandbox) FollowEvaluate(ctx context.Context, code string, o runtime.EvaluateOptions) *runtime.Stream {
	return followed(ctx, message{doing: "evaluate"}, func(ctx context.Context, m message) (exit runtime.ExitEvent) {
		if o.OnLog != nil {
			exit.Err = wrap(m.doing, &runtime.OptionError{Option: "OnLog", Err: errors.New("a stream has events instead")})
			return exit
		}
		exit.Evaluation, exit.Err = sb.c.evaluate(ctx, m, code, o, sb.snippetIn)
		return exit
	})
}

// followed returns a stream of the run that perform makes by m, whose events it gets. When the run is canceled,
// events are dropped.
func followed(ctx context.Context, m message, perform func(context.Context, message) runtime.ExitEvent) *runtime.Stream {
	m.Events = true
	return runtime.NewStream(ctx, func(ctx context.Context, feed *stdio.Feed[runtime.Event]) runtime.ExitEvent {
		defer context.AfterFunc(ctx, feed.End)()
		m.handle = func(f session.Frame) error {
			e, err := eventOf(f)
			if err != nil {
				return nil // an event of a newer server
			}
			if feed.WaitForRoom(); ctx.Err() == nil {
				feed.Put(e, stdio.EventWeight+len(f.Body))
			}
			return nil
		}
		return perform(ctx, m)
	})
}

// eventOf returns the event of a frame. It fails if this version does not know the event.
func eventOf(f session.Frame) (runtime.Event, error) {
	switch f.Kind {
	case session.KindStdout:
		return runtime.StdoutEvent{Data: f.Body}, nil
	case session.KindStderr:
		return runtime.StderrEvent{Data: f.Body}, nil
	case session.KindEvent:
		var e session.Event
		if err := json.Unmarshal(f.Body, &e); err != nil {
			return nil, err
		}
		return resultjson.Event(e.Event, e.Data)
	}
	return nil, fmt.Errorf("kind %d is not an event", f.Kind)
}
