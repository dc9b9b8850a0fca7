package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"gaol/internal/lazyregexp"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// SpawnOptions are the options of a spawned process. The zero value starts it with the
// runtime's settings, pipes as standard streams, and no time limit.
type SpawnOptions struct {
	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // laid over the runtime's Env
	Cwd         string             // the working directory, which must exist; empty: the runtime's

	// Name, Format and Args are as in RunOptions, for SpawnCode. With Spawn, Args are an
	// error, and the others are ignored.
	Name   string
	Format ModuleFormat
	Args   []string

	// Timeout is the wall-clock time that the process may take, including its start. Zero
	// means no limit; a negative one is an error. Limits.CPUTime applies, too.
	Timeout time.Duration

	// Terminal, if not nil, makes the process's standard streams a terminal. Process.Stdout
	// then has all output.
	Terminal *Terminal
}

// Terminal describes the terminal of a process: a pseudo-terminal of the guest, /dev/pts/N,
// that controls the process's session. The process has job control, /dev/tty, and signals by
// keys, such as SIGINT by "\x03". Its output is untrusted: the caller must filter escape
// sequences before showing it on a terminal of the host.
//
// All runs of a runtime belong to one user, and can open each other's terminals. A runtime can
// have at most 64 terminals, including the guests' own: beyond that Spawn's error wraps ENOSPC.
type Terminal struct {
	// Rows and Cols are the window's size in characters. If both are zero, they are 24 and
	// 80. A single zero is an error.
	Rows, Cols uint16

	// Term is the variable TERM, which Env may replace: the kind of terminal that the caller
	// emulates. At most 64 letters, digits and +-._ ; empty: "xterm-256color".
	Term string
}

const (
	defaultRows = 24
	defaultCols = 80
	defaultTerm = "xterm-256color"
)

// Spawn starts a long-lived process and returns once it runs. ctx bounds the start only: the
// process lives until it exits, is killed ([Process.Kill], [NodeRuntime.Kill]), exceeds a
// limit, or the runtime is closed. It is a run with the limits of one. While it lives it
// counts towards Options.MaxConcurrentRuns, and Spawn waits for its turn.
//
// name and the errors are as for [NodeRuntime.Command]. If ctx ends during the start, the
// error is its cause; if Timeout does, context.DeadlineExceeded.
//
// The caller must read the process's output: the process blocks when a pipe is full, see
// [Process].
func (rt *NodeRuntime) Spawn(ctx context.Context, name string, args []string, o SpawnOptions) (_ *Process, err error) {
	defer wrap(&err, "spawn")
	return rt.spawn(ctx, imageCommand(name, args), o)
}

// SpawnCode is Spawn for a Node program, as in [NodeRuntime.Run]. The value that it passes to
// __return is in the Result of [Process.Wait].
func (rt *NodeRuntime) SpawnCode(ctx context.Context, code string, o SpawnOptions) (_ *Process, err error) {
	defer wrap(&err, "spawn")
	return rt.spawn(ctx, nodeProgram(code, true), o)
}

func (rt *NodeRuntime) spawn(ctx context.Context, lower lowering, o SpawnOptions) (*Process, error) {
	size, err := o.validate()
	if err != nil {
		return nil, err
	}
	limit, stop := rt.bound(ctx, 0)
	defer stop()
	t, err := lower(limit, rt.opts, o.runOptions())
	if err != nil {
		return nil, rt.startError(limit, err)
	}
	streams := &stdio.Interactive{}
	if o.Terminal != nil {
		t.useTerminal()
		streams.OpenTerminal = func() (*sandbox.Terminal, error) { return rt.sandbox.OpenTerminal(size) }
	}
	p, err := rt.start(ctx, t, streams, o.Timeout)
	if err != nil {
		return nil, err
	}
	p.Stdin, p.Stdout, p.Stderr, p.terminal = streams.Stdin, streams.Stdout, streams.Stderr, streams.Terminal
	return p, nil
}

// start starts a process without a waiting caller, when its turn has come. Process.wait then
// leaves the runtime's queue. A timeout of zero is no limit.
func (rt *NodeRuntime) start(ctx context.Context, t *task, s stdio.Streams, timeout time.Duration) (_ *Process, err error) {
	if !rt.active.reserve() {
		return nil, ErrClosed
	}
	defer func() {
		if err != nil {
			rt.active.spawned.Done()
		}
	}()
	asked := time.Now()
	started, ok := rt.takeTurn(ctx)
	if !ok {
		return nil, rt.startError(ctx, nil)
	}
	defer started()
	p := &Process{queued: time.Since(asked), done: make(chan struct{})}
	// ctx bounds the start only. detach reports whether ctx was still active when the start
	// returned: from then on the process no longer depends on it.
	p.limit, p.stop = withTimeout(context.WithoutCancel(ctx), cmp.Or(timeout, -1))
	detach := context.AfterFunc(ctx, p.stop)
	p.run, err = rt.startRun(p.limit, t, s)
	if detach() && err == nil {
		go p.wait()
		return p, nil
	}
	if err == nil { // it began just as ctx ended
		_, err = p.run.finish(p.limit, nil)
	}
	err = rt.startError(ctx, errors.Join(err, context.Cause(p.limit)))
	p.stop()
	rt.queue.leave()
	return nil, err
}

// startError returns why a process could not be started.
func (rt *NodeRuntime) startError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return contextError(ctx)
	case isClosed(rt.closing):
		return ErrClosed
	case errors.Is(err, errTimeout):
		return errTimeout
	}
	return err
}

// validate checks the options, and returns the size of the terminal.
func (o SpawnOptions) validate() (size sandbox.TerminalSize, err error) {
	if o.Timeout < 0 {
		return size, optionError("Timeout", "%v is negative", o.Timeout)
	}
	if o.Terminal == nil {
		return size, nil
	}
	size = sandbox.TerminalSize{Rows: o.Terminal.Rows, Cols: o.Terminal.Cols}
	size = cmp.Or(size, sandbox.TerminalSize{Rows: defaultRows, Cols: defaultCols})
	if term := o.Terminal.Term; term != "" && !termPattern().MatchString(term) {
		return size, optionError("Terminal", "%q is not a kind of terminal", term)
	}
	return size, checkSize(size)
}

var termPattern = lazyregexp.New(`^[A-Za-z0-9+._-]{1,64}$`)

func checkSize(s sandbox.TerminalSize) error {
	if s.Rows == 0 || s.Cols == 0 {
		return fmt.Errorf("a terminal of %d rows and %d columns", s.Rows, s.Cols)
	}
	return nil
}

// runOptions returns the options that RunOptions has, too.
func (o SpawnOptions) runOptions() RunOptions {
	r := RunOptions{Permissions: o.Permissions, Name: o.Name, Format: o.Format, Args: o.Args, Env: o.Env, Cwd: o.Cwd}
	if o.Terminal == nil {
		return r
	}
	r.Env = map[string]string{"TERM": cmp.Or(o.Terminal.Term, defaultTerm)}
	maps.Copy(r.Env, o.Env)
	return r
}
