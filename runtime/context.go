package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gaol/policy"
)

// ContextOptions says what a context is made of. A zero field takes its default.
type ContextOptions struct {
	// Globals are what the cells find in globalThis, as Options.Bindings, over which they
	// are laid by name.
	Globals map[string]any

	// IdleTimeout is how long a context waits for its next cell before it ends. Default
	// 10 minutes; negative: for ever.
	IdleTimeout time.Duration

	// OnLog gets the lines that come between two cells, as they come, one at a time: the
	// first 100. Nil: they are the first of the next cell's.
	OnLog func(Log)

	// LastValue keeps the value of the last cell in globalThis._, as Node's REPL does.
	// Once code sets the variable or declares one of that name, it is the code's.
	LastValue bool

	// Heap is V8's, in bytes: default what Limits.Memory leaves it, as for Run, which is
	// also the most.
	Heap int64

	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // as RunOptions.Env
	Cwd         string             // as RunOptions.Cwd
}

const (
	defaultContexts = 16
	defaultIdle     = 10 * time.Minute

	contextName = "context.mjs" // the main module

	// metaName is what import.meta is in cells: that of the main module, which does no more
	// than to leave it there.
	metaName    = "__meta"
	namedName   = "__named" // of guest/context.cjs
	contextCode = "Object.defineProperty(globalThis, '" + metaName + "', { value: import.meta })"

	// eofGrace is how long a process may take to end after it has closed its channel.
	eofGrace = time.Second
)

var (
	// ErrContextEnded is wrapped by the errors about a context that has no process any
	// more, beside why.
	ErrContextEnded = errors.New("the context has ended")

	// ErrManyContexts is NewContext's for a runtime that has Options.MaxContexts.
	ErrManyContexts = errors.New("the runtime has as many contexts as Options.MaxContexts lets it have")
)

// ExitError is why a context has ended whose process did so by itself.
type ExitError struct{ Code int } // its exit status

// Error names the status.
func (e *ExitError) Error() string { return fmt.Sprintf("its process has exited with code %d", e.Code) }

// Context is a process of Node that keeps what its cells declare, like a notebook. Its
// methods may be called from several goroutines at once; cells take turns.
//
// What a cell leaves under way, such as a timer, goes on between cells. The process
// lives until Close, IdleTimeout, its runtime's Close, a limit, or its own doing: it is a
// run, for which the runtime's limits hold as a whole, and which takes up one of
// Options.MaxConcurrentRuns. It is never started again: what the variables held is lost
// with it, and every cell after it gets [ErrContextEnded].
type Context struct {
	rt      *NodeRuntime
	options ContextOptions
	process *Process
	cells   *cells
	streams *cellStreams
	sources *sources
	broken  chan error // cells' end

	turn   chan struct{} // has one who works at the context
	idle   *time.Timer   // nil without IdleTimeout
	used   time.Time     // when the last turn ended; the turn's
	count  int           // of cells; the turn's
	number uint32        // of the last frame; the turn's
	late   *cell         // a question for names that nobody waits for any more; nil: none; the turn's

	mu  sync.Mutex
	why error // why it is to end; nil: not by us

	done    chan struct{}
	err     error // why it has ended, once done is closed
	hostErr error // what went wrong with that
}

// NewContext starts a context, and returns when it is ready. ctx bounds the start alone. The error wraps
// [ErrManyContexts] if there are too many.
func (rt *NodeRuntime) NewContext(ctx context.Context, o ContextOptions) (*Context, error) {
	c, err := rt.newContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("gaol: context: %w", err)
	}
	return c, nil
}

func (rt *NodeRuntime) newContext(ctx context.Context, o ContextOptions) (*Context, error) {
	o, err := o.settle(rt.opts)
	if err != nil {
		return nil, err
	}
	c := &Context{
		rt: rt, options: o, sources: newSources(), broken: make(chan error, 1),
		turn: make(chan struct{}, 1), done: make(chan struct{}),
	}
	c.cells = newCells(o.OnLog, c.sources, func(err error) { c.broken <- err })
	c.streams = newCellStreams(c.cells)
	start := &cell{done: make(chan struct{})}
	c.cells.begin(start)
	t, err := rt.opts.contextTask(o, c.cells)
	if err != nil {
		return nil, err
	}
	select {
	case rt.contexts <- struct{}{}:
	default:
		return nil, ErrManyContexts
	}
	if c.process, err = rt.raise(ctx, t, c.streams, 0); err != nil {
		rt.contexts.leave()
		return nil, err
	}
	go c.attend()
	if err := c.awaitStart(ctx, start); err != nil {
		return nil, err
	}
	if o.IdleTimeout > 0 {
		c.idle = time.AfterFunc(o.IdleTimeout, c.endIdle)
	}
	return c, nil
}

// awaitStart waits until the guest's half is there: a cell could not be interrupted
// before.
func (c *Context) awaitStart(ctx context.Context, start *cell) error {
	limit, stop := withTimeout(ctx, 0)
	defer stop()
	select {
	case <-start.done:
		return nil
	case <-c.done:
		return c.err
	case <-limit.Done():
		c.end(context.Cause(limit))
		<-c.done
		return context.Cause(limit)
	}
}

func (o ContextOptions) settle(s settings) (ContextOptions, error) {
	o.IdleTimeout = cmp.Or(o.IdleTimeout, defaultIdle)
	most := heapMiB(s.limits.Memory) << 20
	if o.Heap = cmp.Or(o.Heap, most); o.Heap < minHeap || o.Heap > most {
		return o, &LimitError{"Heap", float64(o.Heap), minHeap, float64(most)}
	}
	return o, nil
}

// contextTask lowers a context to what it starts.
func (s settings) contextTask(o ContextOptions, c *cells) (*task, error) {
	given, err := newGlobals(o.Globals)
	if err != nil {
		return nil, optionError("Globals", "%w", err)
	}
	s.bindings = s.bindings.with(given)
	s.heapMiB = o.Heap >> 20
	s.context = &contextHead{idleBounds, o.LastValue}
	t, err := s.nodeTask(contextCode, RunOptions{Name: contextName, Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd}, true)
	if err != nil {
		return nil, err
	}
	t.cells = c
	return t, nil
}

// attend takes the context to its end.
func (c *Context) attend() {
	select {
	case <-c.process.Done():
	case err := <-c.broken:
		if err != nil {
			c.end(fmt.Errorf("it does not keep to the protocol: %w", err))
			break
		}
		select {
		case <-c.process.Done():
		case <-time.After(eofGrace):
			c.end(errSilent)
		}
	}
	<-c.process.Done()
	c.over(c.process.Wait(context.Background()))
}

// errSilent is why a context is ended that can't be told anything any more.
var errSilent = errors.New("it has closed its channel to the host")

// over takes what came of the process.
func (c *Context) over(res *Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.why, errSilent) && res != nil && res.Cause != CauseCanceled {
		c.why = nil // it was ending by itself, and took its time
	}
	c.err = fmt.Errorf("%w: %w", ErrContextEnded, c.reason(res))
	if res == nil {
		c.hostErr = err
	}
	c.rt.contexts.leave()
	close(c.done)
}

// reason is why the process has ended. res may be nil.
//
// Preconditions: c.mu is held.
func (c *Context) reason(res *Result) error {
	select {
	case <-c.rt.closing:
		return ErrClosed
	default:
	}
	switch {
	case c.why != nil:
		return c.why
	case res == nil:
		return errors.New("its process could not be ended")
	case res.Cause == CauseMemory:
		return errors.New("it used up its memory")
	case res.Cause == CauseCanceled:
		return errors.New("its process was killed")
	case res.Cause != CauseNone && res.Cause != CauseSignal:
		return fmt.Errorf("it used up its limit: %s", res.Cause)
	case res.Signal != "":
		return fmt.Errorf("its process was ended by %s", res.Signal)
	}
	return &ExitError{res.ExitCode}
}

// end has the context end. The first reason counts. It does not wait.
func (c *Context) end(why error) {
	c.mu.Lock()
	if c.why == nil {
		c.why = why
	}
	c.mu.Unlock()
	c.process.Kill()
}

func (c *Context) endIdle() {
	select {
	case c.turn <- struct{}{}: // and nobody else gets it
	default: // somebody works at it, and will set the timer, or it has ended
		return
	}
	if left := c.options.IdleTimeout - time.Since(c.used); left > 0 { // the timer went off before that
		c.leaveAfter(left)
		return
	}
	c.end(fmt.Errorf("nobody used it for %v", c.options.IdleTimeout))
}

// Close ends the context, and a cell that goes on with CanceledError. It returns when
// nothing is left of the process.
func (c *Context) Close() error {
	c.end(ErrClosed)
	<-c.done
	if c.idle != nil {
		c.idle.Stop()
	}
	if c.hostErr != nil {
		return fmt.Errorf("gaol: context: %w", c.hostErr)
	}
	return nil
}

// Done is closed when the context has ended.
func (c *Context) Done() <-chan struct{} { return c.done }

// Err is nil until Done is closed, and then says why: it wraps [ErrContextEnded], and
// [ErrClosed] if the context or its runtime was closed, or an [*ExitError].
func (c *Context) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// takeTurn waits until nobody else works at the context. The caller then has to leave.
func (c *Context) takeTurn(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return contextError(ctx)
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Lock()
	ending := c.why != nil
	c.mu.Unlock()
	if ending {
		<-c.done
	}
	if err := c.Err(); err != nil {
		c.leaveTurn()
		return err
	}
	return nil
}

// nextNumber is for a frame.
//
// Preconditions: the turn is the caller's.
func (c *Context) nextNumber() uint32 {
	c.number++
	return c.number
}

func (c *Context) leaveTurn() {
	c.used = time.Now()
	c.leaveAfter(c.options.IdleTimeout)
}

// leaveAfter leaves the turn, and sets the timer: last, as it needs the turn when it goes off.
func (c *Context) leaveAfter(left time.Duration) {
	<-c.turn
	if c.idle != nil && c.Err() == nil {
		c.idle.Reset(left)
	}
}
