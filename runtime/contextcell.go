package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/snippet"
	"gaol/internal/wire"
)

// cellHead is a cell as the guest gets it; guest/context.cjs draws it.
type cellHead struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Value int64  `json:"value"`
	evaluateHead
	Globals string `json:"globals,omitempty"`
}

// Evaluate evaluates a cell in the context, when its turn has come. Whatever it declares
// at its top level, imports too, is there for later cells, also if it fails later on;
// const and let can be declared again. Code may be what a model wrote, as for
// [NodeRuntime.Evaluate]. await stands anywhere, and what the last expression is a promise
// of is awaited. import.meta is that of a module in the context's Cwd, and so are require and
// the other names of CommonJS. What a cell exports counts for that cell alone: the next one
// begins with an empty module.exports. Stack traces know the nth cell as cell-n.js.
//
// A cell whose time is up, or whose ctx is done, is interrupted, and mostly the context
// goes on, whether the cell waits for something or is busy. What is busy in a callback, as
// of a timer, or in code that is not JavaScript, costs the process, two seconds later:
// Evaluation.Error then says so, as it does when the code itself ended the process.
// Evaluation.Cause is why the process has ended, and empty if it goes on.
//
// All limits in o are the cell's: MaxCalls counts calls from its begin to its end, and
// between cells there are none. An error that nobody catches is the cell's that goes on,
// unless its stack has an earlier one; then, and between two cells, it becomes a line of
// Logs. Usage is what the process used during the cell, and the most that it had so far.
//
// In Globals there may be data alone. Heap, Permissions, Env and Cwd are the context's and
// can't be given. The error is nil whatever the cell did; it wraps [ErrContextEnded] if
// the context has ended before. If ctx ended the cell, the error wraps ctx.Err() and the cause
// of ctx; if Close of the context or of its runtime did, it wraps [ErrContextEnded] and
// [ErrClosed]. The Evaluation is returned beside either.
func (c *Context) Evaluate(ctx context.Context, code string, o EvaluateOptions) (*Evaluation, error) {
	e, err := c.evaluate(ctx, code, o)
	if err != nil {
		err = fmt.Errorf("gaol: evaluate: %w", err)
	}
	return e, err
}

func (c *Context) evaluate(ctx context.Context, code string, o EvaluateOptions) (*Evaluation, error) {
	o, globals, err := c.settle(o)
	if err != nil {
		return nil, err
	}
	if err := c.takeTurn(ctx); err != nil {
		if errors.Is(err, ErrContextEnded) {
			return nil, err
		}
		return (&notes{options: o}).conclude(&Result{Cause: CauseCanceled}), err
	}
	defer c.leaveTurn()
	c.count++
	name := fmt.Sprintf("cell-%d.js", c.count)
	n := &notes{sources: c.sources, options: o, began: time.Now()}
	p, err := snippet.Names{Meta: metaName, Named: namedName}.Cell(code)
	if err != nil {
		return &Evaluation{Error: syntaxError(err, name), Duration: time.Since(n.began)}, nil
	}
	c.sources.add(name, p, code)
	head := cellHead{p.Code, name, o.MaxOutput, evaluateHead{logBounds{o.MaxLogs, o.MaxLogLength}, formNames[o.Form], p.Explicit}, globals}
	return c.perform(ctx, &cell{number: c.nextNumber(), limit: o.MaxOutput, notes: n, done: make(chan struct{})}, head)
}

// settle checks a cell's options and fills in what is not given.
func (c *Context) settle(o EvaluateOptions) (_ EvaluateOptions, globals string, err error) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"Heap", o.Heap != 0}, {"Permissions", !o.Permissions.IsZero()}, {"Env", len(o.Env) > 0}, {"Cwd", o.Cwd != ""},
	} {
		if f.given {
			return o, "", fmt.Errorf("option %s: it is the context's", f.name)
		}
	}
	if o, err = o.settle(c.rt.opts); err != nil {
		return o, "", err
	}
	o.Heap = c.options.Heap
	given, err := newGlobals(o.Globals)
	if err != nil {
		return o, "", optionError("Globals", "%w", err)
	}
	if len(given.functions) > 0 {
		return o, "", optionError("Globals", "%s is a function: a context has those of ContextOptions.Globals", given.functions[0].name())
	}
	globals, err = given.text()
	return o, globals, err
}

// perform has the guest evaluate a cell, and says what came of it.
//
// Preconditions: the turn is the caller's.
func (c *Context) perform(ctx context.Context, cl *cell, head cellHead) (*Evaluation, error) {
	live := c.process.live
	denied := live.denials.now()
	used, _ := live.usage() // zero if it has just ended
	if calls := live.streams.control.calls; calls != nil {
		calls.renew(cl.notes.options.MaxCalls)
	}
	c.streams.begin(head.LogLength)
	cause, err := c.exchange(ctx, cl, head, cl.notes.options.Timeout)
	if err != nil {
		return nil, err
	}
	res, err := c.outcome(cl, cause)
	if err != nil {
		return nil, err
	}
	now, err := live.usage()
	if err != nil {
		return nil, err
	}
	now.CPU -= used.CPU
	res.Usage, res.Duration = now, time.Since(cl.notes.began)
	res.Denials, res.Truncated.Denials = live.denials.since(denied)
	return c.conclude(cl, res), c.cancellation(ctx, res.Cause)
}

// cancellation is the error beside an evaluation: why a cell was ended, if not by itself, a
// limit or a signal.
func (c *Context) cancellation(ctx context.Context, cause Cause) error {
	switch {
	case cause != CauseCanceled:
		return nil
	case ctx.Err() != nil:
		return contextError(ctx)
	case errors.Is(c.Err(), ErrClosed):
		return c.Err()
	}
	return nil
}

// exchange sends a cell and waits for its end, or that of the process. It says why it
// had the cell ended, if it did. A question for names is left to end by itself: it is to cost
// nothing, and the next cell begins after it.
func (c *Context) exchange(ctx context.Context, cl *cell, head any, timeout time.Duration) (Cause, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return CauseNone, err
	}
	limit, stop := withTimeout(ctx, timeout)
	defer stop()
	asks := cl.notes == nil
	if c.late != nil && !c.await(limit, c.late) {
		if !asks {
			c.interrupt(c.late)
			close(cl.done) // it has not begun
		}
		return endCause(limit), nil
	}
	c.late = nil
	c.cells.begin(cl)
	c.send(wire.AppendCell(make([]byte, 0, len(text)+16), cl.number, text))
	switch {
	case c.await(limit, cl):
		return CauseNone, nil
	case asks:
		c.late = cl
	default:
		c.interrupt(cl)
	}
	return endCause(limit), nil
}

// await waits for the end of a cell, or that of the process. It reports false if limit ends
// before.
func (c *Context) await(limit context.Context, cl *cell) bool {
	select {
	case <-cl.done:
	case <-c.process.Done():
	case <-limit.Done():
		return false
	}
	return true
}

// send does not wait for a guest who does not read.
func (c *Context) send(frame []byte) { go c.process.live.streams.control.out.send(frame) }

// interruptions are how a cell is ended, one after the other, each with the time that it
// has to work.
var interruptions = []struct {
	patience time.Duration
	try      func(*Context, *cell)
}{
	// What waits for something goes on without the cell.
	{100 * time.Millisecond, func(c *Context, cl *cell) { c.send(wire.AppendInterrupt(nil, cl.number)) }},
	// Node has its script end.
	{400 * time.Millisecond, func(c *Context, _ *cell) { _ = c.process.live.process.Signal(unix.SIGINT, false) }},
	// So do programs that it waits for.
	{1500 * time.Millisecond, func(c *Context, _ *cell) { _ = c.process.live.process.Signal(unix.SIGINT, true) }},
}

// interrupt ends a cell, and the process if it must. It waits for that.
func (c *Context) interrupt(cl *cell) {
	for _, i := range interruptions {
		i.try(c, cl)
		select {
		case <-cl.done:
			return
		case <-c.process.Done():
			return
		case <-time.After(i.patience):
		}
	}
	c.end(fmt.Errorf("cell %d could not be interrupted", cl.number))
	<-c.process.Done()
}

// outcome is a result that has what came of a cell: that of the process, if that has
// ended, and cause is why a cell was to end, if it was.
func (c *Context) outcome(cl *cell, cause Cause) (*Result, error) {
	res := &Result{}
	select {
	case <-cl.done:
		c.streams.flush()
	default: // the process has ended, and all that it printed is taken in
		var err error
		if res, err = c.process.Wait(context.Background()); res == nil {
			return nil, err
		}
		<-c.done
	}
	res.Value, res.told, res.Calls = cl.value, &told{failure: cl.failure, noValue: cl.noValue}, nil
	if cause != CauseNone {
		res.Cause = cause
	}
	if calls := c.process.live.streams.control.calls; calls != nil {
		res.Calls, res.Truncated.Calls = calls.listed()
	}
	for i := range res.Calls {
		if res.Calls[i].Error == unanswered {
			res.Calls[i].Error = "the cell ended first"
		}
	}
	return res, nil
}

// conclude makes the evaluation of a cell's result. One that cost the process says so.
func (c *Context) conclude(cl *cell, res *Result) *Evaluation {
	e := cl.notes.conclude(res)
	select {
	case <-cl.done:
		e.Cause = CauseNone
		return e
	default:
	}
	if e.Error == nil {
		e.Error = &GuestError{Name: "ExitError", Message: fmt.Sprintf("the code ended its process with exit code %d", res.ExitCode)}
	}
	e.Error.Message += ". The context has ended" + c.whyText() + ", and what its variables held is lost"
	return e
}

// whyText is a reason that the process's own end does not tell.
func (c *Context) whyText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", c.why)
}
