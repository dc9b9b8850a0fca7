package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrClosed is returned by the methods of a closed runtime or pool. A run that the close of
// its runtime ended has it beside its Result.
var ErrClosed = errors.New("it is closed")

// Run runs code as a program of Node and waits for its end. The code is an ES
// module, or CommonJS if it can be nothing else (see [FormatAuto]): top-level await, import
// of node: modules, of packages and of files relative to the working directory work. The
// program is no file itself, so a child process can't be started from its path; a Worker can.
//
// The program may call __return(value) any number of times; the JSON text of the
// last value comes back as Result.Value, also when the program fails later. Values become
// JSON as by JSON.stringify, with these differences: undefined is null; a Map is an object,
// or an array of pairs if a key is no text; a Set is an array; bytes are base64, and other
// typed arrays are arrays of numbers; an error is an object with its name and message; a
// regular expression is text. A BigInt, a cycle, a function alone, and an object of which
// nothing would be left, such as a Promise, throw a TypeError in the program that names the
// place in the value; docs/values.md has the table. What is larger than Limits.Value throws
// a RangeError.
//
// The error is nil whatever the program did, and if it ran out of its own limits, such as
// RunOptions.Timeout. If ctx ended the run, the error wraps ctx.Err() and the cause of ctx; if
// the runtime's Close did, it wraps [ErrClosed]. The Result, with CauseCanceled, is returned
// beside either, with all that the run had printed and returned by then.
func (rt *NodeRuntime) Run(ctx context.Context, code string, o RunOptions) (*Result, error) {
	return rt.named("run", func() (*Result, error) {
		t, err := rt.opts.nodeTask(code, o, true)
		if err != nil {
			return nil, err
		}
		return rt.do(ctx, t, o)
	})
}

// Exec is Run for a program that returns nothing: it has no __return.
func (rt *NodeRuntime) Exec(ctx context.Context, code string, o RunOptions) (*Result, error) {
	return rt.named("exec", func() (*Result, error) {
		t, err := rt.opts.nodeTask(code, o, false)
		if err != nil {
			return nil, err
		}
		return rt.do(ctx, t, o)
	})
}

// Command runs a program of the image with arguments, without a shell in
// between. name is a path in the guest's tree, or is looked up in the PATH that the run
// gets, or in /bin and /usr/bin if its permissions keep that from it; the error wraps
// fs.ErrNotExist if there is no such program, and fs.ErrPermission if it may not be
// executed.
func (rt *NodeRuntime) Command(ctx context.Context, name string, args []string, o RunOptions) (*Result, error) {
	return rt.named("command", func() (*Result, error) {
		t, err := rt.opts.commandTask(name, args, o)
		if err != nil {
			return nil, err
		}
		return rt.do(ctx, t, o)
	})
}

func (rt *NodeRuntime) named(what string, f func() (*Result, error)) (*Result, error) {
	if isClosed(rt.closing) {
		return nil, fmt.Errorf("gaol: %s: %w", what, ErrClosed)
	}
	res, err := f()
	if err != nil {
		err = fmt.Errorf("gaol: %s: %w", what, err)
	}
	return res, err
}

// do takes one run from its turn to its end.
func (rt *NodeRuntime) do(ctx context.Context, t *task, o RunOptions) (*Result, error) {
	return rt.inTurn(ctx, func(started func()) (*Result, error) { return rt.perform(ctx, t, o, started) })
}

// perform takes one run from its start to its end. It calls started in between.
func (rt *NodeRuntime) perform(ctx context.Context, t *task, o RunOptions, started func()) (*Result, error) {
	began := time.Now()
	limit, stop := withTimeout(ctx, o.Timeout)
	defer stop()
	ends, full := t.ends(o)
	l, err := rt.begin(limit, t, ends)
	started()
	if err != nil {
		return rt.notStarted(limit, t, began, err)
	}
	return l.finish(limit, full)
}

// ends are those of a run that is waited for, or followed. full is closed when it prints
// more than it may. What an evaluation prints is told by its lines.
func (t *task) ends(o RunOptions) (e ends, full <-chan struct{}) {
	if t.feed != nil && t.told == nil {
		f := newFollowed(t, o)
		return f, f.full
	}
	c := newCaptured(t, o)
	return c, c.full
}

var errTimeout = fmt.Errorf("the run's time is up: %w", context.DeadlineExceeded)

// withTimeout bounds a run, its start included.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case timeout < 0:
		return context.WithCancel(ctx)
	case timeout == 0:
		timeout = defaultTimeout
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

// endCause says why the context of withTimeout ended.
func endCause(limit context.Context) Cause {
	if errors.Is(context.Cause(limit), errTimeout) {
		return CauseTimeout
	}
	return CauseCanceled
}

// Close kills what runs, which then ends with CauseCanceled and [ErrClosed], and removes the
// sandbox with its files. It returns when nothing is left of it. Closing twice
// returns what the first Close did.
func (rt *NodeRuntime) Close() error {
	rt.close.Do(func() {
		rt.live.close()
		close(rt.closing)
		if err := rt.release(); err != nil {
			rt.err = fmt.Errorf("gaol: close: %w", err)
		}
	})
	return rt.err
}
