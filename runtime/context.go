package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gaol/internal/snippet"
	"gaol/policy"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/internal/work"
)

// ContextOptions are the options of a context. A zero field takes its default.
type ContextOptions struct {
	// Globals are variables in globalThis, like Options.Bindings, which they replace by name.
	Globals map[string]any

	// IdleTimeout is how long a context waits for its next cell before it ends. Default 10
	// minutes; negative: no limit.
	IdleTimeout time.Duration

	// OnLog is called with each line that arrives between two cells, one at a time: the first
	// 100. If it is nil, they become the first lines of the next cell.
	OnLog func(Log)

	// LastValue keeps the value of the last cell in globalThis._, as Node's REPL does, until
	// code sets the variable or declares one of that name.
	LastValue bool

	// Heap is as EvaluateOptions.Heap.
	Heap int64

	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // as RunOptions.Env
	Cwd         string             // as RunOptions.Cwd
}

const (
	defaultIdle = 10 * time.Minute

	contextName = "context.mjs" // the main module

	// contextCode is the main module, whose import.meta cells use.
	contextCode = "Object.defineProperty(globalThis, '" + snippet.Meta + "', { value: import.meta })"

	// eofGrace is how long a process may take to exit after it has closed its channel.
	eofGrace = time.Second
)

var (
	// ErrContextEnded is wrapped by errors about a context whose process has ended, beside
	// the reason.
	ErrContextEnded = errors.New("the context has ended")

	// ErrManyContexts is NewContext's error for a runtime that has Options.MaxContexts
	// contexts.
	ErrManyContexts = errors.New("the runtime has as many contexts as Options.MaxContexts lets it have")
)

// ExitError reports that a context has ended because its process exited.
type ExitError struct{ Code int } // its exit status

// Error returns a text with the exit status.
func (e *ExitError) Error() string { return fmt.Sprintf("its process has exited with code %d", e.Code) }

// Context is a Node process that keeps the declarations of its cells, like a notebook. It is
// safe for concurrent use; cells run one after another.
//
// Asynchronous work that a cell has started, such as a timer, continues between cells. The
// process lives until Close, IdleTimeout, its runtime's Close, a limit, or until it exits. It
// is a run: the runtime's limits apply to its whole life, and it counts towards
// Options.MaxConcurrentRuns. It is never restarted: its variables are lost when it ends, and
// every later cell gets [ErrContextEnded].
type Context struct {
	rt      *NodeRuntime
	options ContextOptions
	process *Process
	cells   *cells
	streams *stdio.Streams
	sources *snippet.Sources

	turn chan struct{} // a lock: holds an element while the context is in use
	idle *time.Timer   // nil without IdleTimeout

	// Protected by turn.
	used     time.Time                   // when the last turn ended
	count    int                         // of cells
	number   uint32                      // of the last frame
	declared map[string]snippet.Declared // names of cells
	late     *cell                       // a request for completions whose caller no longer waits; nil: none

	mu     sync.Mutex
	reason error // why we ended it; nil: we did not

	err error // why it has ended, once its process is done
}

// NewContext starts a context and returns when it is ready. ctx bounds the start only. The
// error wraps [ErrManyContexts] if the runtime has too many.
func (rt *NodeRuntime) NewContext(ctx context.Context, o ContextOptions) (_ *Context, err error) {
	defer wrap(&err, "context")
	o.Heap = cmp.Or(o.Heap, rt.opts.heapMiB<<20)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, defaultIdle)
	if err := checkHeap(o.Heap, rt.opts.Limits); err != nil {
		return nil, err
	}
	c := &Context{
		rt: rt, options: o, sources: snippet.NewSources("", guest.Dir),
		declared: map[string]snippet.Declared{}, turn: make(chan struct{}, 1),
	}
	c.cells = newCells(o.OnLog, c.sources, c.channelClosed)
	c.streams = &stdio.Streams{Out: c.cells.sink(fromStdout, LogStdout), Err: c.cells.sink(fromStderr, LogStderr)}
	start := &cell{done: make(chan struct{})}
	c.cells.begin(start)
	// Unlike runs, contexts do not wait for their turn: the active ones may never end.
	if !rt.contexts.TryAcquire(1) {
		return nil, ErrManyContexts
	}
	c.process = &Process{
		code:    &guest.Program{Code: contextCode, Value: rt.opts.Limits.Value, Context: &guest.Context{LogBounds: idleBounds, Last: o.LastValue}},
		globals: o.Globals, heap: o.Heap, cells: c.cells, streams: c.streams, detached: true, onEnd: c.finish,
	}
	if !rt.start(ctx, c.process, RunOptions{Name: contextName, Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd, Timeout: -1}) {
		rt.contexts.Release(1)
		return nil, c.process.startError()
	}
	if err := c.awaitStart(ctx, start); err != nil {
		return nil, err
	}
	if o.IdleTimeout > 0 {
		c.idle = time.AfterFunc(o.IdleTimeout, c.stopIdle)
	}
	return c, nil
}

// awaitStart waits until the guest's half is ready: cells cannot be interrupted before.
func (c *Context) awaitStart(ctx context.Context, start *cell) error {
	limit, stop := c.rt.pausing.withTimeout(ctx, 0)
	defer stop()
	select {
	case <-start.done:
		return nil
	case <-c.Done():
		return c.err
	case <-limit.Done():
		c.stop(context.Cause(limit))
		<-c.Done()
		return context.Cause(limit)
	}
}

// channelClosed ends the process after its channel: without that no cell could be sent or ended any more. A
// process that exits closes it, too, a moment earlier. err is a violation of the protocol.
func (c *Context) channelClosed(err error) {
	if err != nil {
		c.stop(fmt.Errorf("it violates the protocol: %w", err))
		return
	}
	time.AfterFunc(eofGrace, func() { c.stop(errSilent) })
}

// errSilent is why a context is ended that does not exit after closing its channel.
var errSilent = errors.New("it has closed its channel to the host")

// finish records how the process ended, just before it is done.
func (c *Context) finish(res *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.reason, errSilent) && res != nil && res.Cause != CauseCanceled {
		c.reason = nil // it was exiting, slowly
	}
	c.err = fmt.Errorf("%w: %w", ErrContextEnded, c.endError(res))
	c.rt.contexts.Release(1)
}

// endError returns why the process has ended. res may be nil.
//
// Preconditions: c.mu is held.
func (c *Context) endError(res *Result) error {
	switch {
	case c.rt.alive.Err() != nil:
		return ErrClosed
	case c.reason != nil:
		return c.reason
	case res == nil:
		return errors.New("its process could not be ended")
	case res.Cause == CauseMemory:
		return errors.New("it exceeded its memory limit")
	case res.Cause == CauseCanceled:
		return errors.New("its process was killed")
	case res.Cause != CauseNone && res.Cause != CauseSignal:
		return fmt.Errorf("it exceeded its limit: %s", res.Cause)
	case res.Signal != "":
		return fmt.Errorf("its process was ended by %s", res.Signal)
	}
	return &ExitError{res.ExitCode}
}

// stop ends the context unless it has ended. The first reason counts. It does not wait.
func (c *Context) stop(reason error) {
	c.mu.Lock()
	if c.reason == nil && c.err == nil {
		c.reason = reason
	}
	c.mu.Unlock()
	c.process.Kill()
}

func (c *Context) stopIdle() {
	select {
	case c.turn <- struct{}{}: // and never returned
	default: // it is in use, and will set the timer, or it has ended
		return
	}
	if left := c.options.IdleTimeout - time.Since(c.used); left > 0 { // it was used after the timer fired
		c.releaseTurn(left)
		return
	}
	c.stop(fmt.Errorf("nobody used it for %v", c.options.IdleTimeout))
}

// Close ends the context, and the current cell with CanceledError. It returns when nothing is
// left of the process.
func (c *Context) Close() (err error) {
	defer wrap(&err, "context")
	c.stop(ErrClosed)
	<-c.Done()
	if c.idle != nil {
		c.idle.Stop()
	}
	if c.process.res == nil {
		return c.process.err
	}
	return nil
}

// Done returns a channel that is closed when the context has ended.
func (c *Context) Done() <-chan struct{} { return c.process.done }

// Err returns nil until Done is closed, and then why the context has ended: the error wraps
// [ErrContextEnded], and [ErrClosed] if the context or its runtime was closed, or an
// [*ExitError] if its process exited.
func (c *Context) Err() error {
	if isClosed(c.Done()) {
		return c.err
	}
	return nil
}

// acquireTurn waits until the context is free. The caller must call leaveTurn.
func (c *Context) acquireTurn(ctx context.Context) error {
	if c.rt.Paused() {
		return ErrPaused
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.Done():
		return c.err
	case <-ctx.Done():
		return work.ContextError(ctx)
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Lock()
	ending := c.reason != nil
	c.mu.Unlock()
	if ending {
		<-c.Done()
	}
	if err := c.Err(); err != nil {
		c.leaveTurn()
		return err
	}
	return nil
}

func (c *Context) leaveTurn() {
	c.used = time.Now()
	c.releaseTurn(c.options.IdleTimeout)
}

// releaseTurn releases the turn and then sets the timer, which needs the turn when it fires.
func (c *Context) releaseTurn(left time.Duration) {
	<-c.turn
	if c.idle != nil && c.Err() == nil {
		c.idle.Reset(left)
	}
}
