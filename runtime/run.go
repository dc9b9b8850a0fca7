package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gaol/runtime/internal/stdio"
)

// ErrClosed is returned by the methods of a closed runtime or pool. If closing its runtime
// ended a run, the run's error wraps ErrClosed, beside the Result.
var ErrClosed = errors.New("it is closed")

// Run runs code as a Node program and waits for its end. The code is an ES module, or
// CommonJS if it can only be CommonJS (see [FormatAuto]). Top-level await works, and so do
// imports of node: modules, of packages, and of files relative to the working directory. The
// program is not a file: a Worker can be started from its path, but not a child process.
//
// The program may call __return(value) any number of times. Result.Value is the JSON text of
// the last value, even if the program fails later. Values are encoded as by JSON.stringify,
// with these differences: undefined is null; a Map is an object, or an array of pairs if a key
// is not a string; a Set is an array; bytes are base64, and other typed arrays are arrays of
// numbers; an error is an object with its name and message; a regular expression is a string.
// A BigInt, a cycle, a function, and an object that would be empty, such as a Promise, throw a
// TypeError in the program that names the place in the value. A value larger than
// Limits.Value throws a RangeError. docs/values.md has the table.
//
// The error is nil whatever the program does, and if it exceeds its own limits, such as
// RunOptions.Timeout. If ctx ends the run, the error wraps ctx.Err() and the cause of ctx. If
// the runtime is closed, the error wraps [ErrClosed]. In both cases the Result, with
// CauseCanceled, is returned too, with all that the run has printed and returned so far.
func (rt *NodeRuntime) Run(ctx context.Context, code string, o RunOptions) (*Result, error) {
	return rt.named("run", func() (*Result, error) {
		t, err := rt.opts.nodeTask(code, o, true)
		if err != nil {
			return nil, err
		}
		return rt.do(ctx, t, o)
	})
}

// Exec is Run for a program without a value: it has no __return.
func (rt *NodeRuntime) Exec(ctx context.Context, code string, o RunOptions) (*Result, error) {
	return rt.named("exec", func() (*Result, error) {
		t, err := rt.opts.nodeTask(code, o, false)
		if err != nil {
			return nil, err
		}
		return rt.do(ctx, t, o)
	})
}

// Command runs a program of the image with arguments, without a shell. name is a path in the
// guest's tree, or is looked up in the run's PATH, or in /bin and /usr/bin if permissions
// hide PATH from the run. The error wraps fs.ErrNotExist if the program does not exist, and
// fs.ErrPermission if it may not be executed.
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

// do runs a task when its turn has come.
func (rt *NodeRuntime) do(ctx context.Context, t *task, o RunOptions) (*Result, error) {
	return rt.inTurn(ctx, func(started func()) (*Result, error) { return rt.perform(ctx, t, o, started) })
}

// perform runs a task from its start to its end. It calls started after the start.
func (rt *NodeRuntime) perform(ctx context.Context, t *task, o RunOptions, started func()) (*Result, error) {
	began := time.Now()
	limit, stop := withTimeout(ctx, o.Timeout)
	defer stop()
	outputExceeded := make(chan struct{})
	stdout, stderr := t.sinks(o, sync.OnceFunc(func() { close(outputExceeded) }))
	r, err := rt.startRun(limit, t, &stdio.Pumped{Stdin: o.Stdin, Stdout: stdout, Stderr: stderr})
	started()
	if err != nil {
		return rt.notStarted(limit, t, began, err)
	}
	res, err := r.finish(limit, outputExceeded)
	if out, ok := stdout.(*stdio.Capture); ok && res != nil {
		res.Stdout, res.Truncated.Stdout = out.Kept, out.Truncated
		out = stderr.(*stdio.Capture)
		res.Stderr, res.Truncated.Stderr = out.Kept, out.Truncated
	}
	return res, err
}

// sinks returns where the output of a task goes: into the lines of an evaluation, a feed, or
// memory.
func (t *task) sinks(o RunOptions, onExceeded func()) (stdout, stderr stdio.Sink) {
	if o.OnOutputLimit != KillOnOutput {
		onExceeded = nil
	}
	switch {
	case t.stdout != nil:
		return t.stdout, t.stderr
	case t.feed != nil:
		return followStdout(t.feed, t.limits.Output, onExceeded), followStderr(t.feed, t.limits.Output, onExceeded)
	}
	capture := func(callback func([]byte)) stdio.Sink {
		return &stdio.Capture{Limit: t.limits.Output, OnLimit: onExceeded, OnOutput: callback}
	}
	return capture(o.OnStdout), capture(o.OnStderr)
}

var errTimeout = fmt.Errorf("the run's time is up: %w", context.DeadlineExceeded)

// withTimeout bounds a run, its start included.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case timeout < 0:
		return context.WithCancel(ctx)
	case timeout == 0:
		timeout = DefaultTimeout
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

// endCause returns why the context of withTimeout ended.
func endCause(limit context.Context) Cause {
	if errors.Is(context.Cause(limit), errTimeout) {
		return CauseTimeout
	}
	return CauseCanceled
}

// Close kills all runs, which then end with CauseCanceled and [ErrClosed], and removes the
// sandbox with its files. It returns when nothing is left of it. Further calls return the
// error of the first.
func (rt *NodeRuntime) Close() error {
	rt.close.Do(func() {
		rt.active.close()
		close(rt.closing)
		if err := rt.release(); err != nil {
			rt.err = fmt.Errorf("gaol: close: %w", err)
		}
	})
	return rt.err
}
