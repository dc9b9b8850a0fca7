package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/snippet"
	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/internal/work"
)

// Evaluate evaluates a cell in the context, one after another. Later cells see its top-level
// declarations, including imports, even if the cell fails. A name can be declared again in any
// way; functions of earlier cells see its new value. The code may be as a model wrote it, as for [NodeRuntime.Evaluate]. await is allowed
// everywhere, and if the last expression is a promise, it is awaited. import.meta, require
// and the other names of CommonJS work as in a module in the context's Cwd. Each cell
// begins with an empty module.exports. In stack traces the nth cell is named cell-n.js.
//
// A cell that exceeds its timeout, or whose ctx is done, is interrupted. Mostly the context
// survives, whether the cell was waiting or busy. If the cell is busy in a callback, such as
// a timer's, or in native code, its process is killed after two seconds. Evaluation.Error
// reports that, and also if the code itself ended the process. Evaluation.Cause is why the
// process has ended, and empty if it has not.
//
// All limits in o are the cell's: MaxCalls counts calls during the cell; between cells calls
// are refused. An uncaught error belongs to the cell that caused it. If that has ended, the error
// becomes a line of Logs. Usage covers the process during the cell, but its peak values cover the
// process's life.
//
// Globals may contain only data. Heap, Permissions, Env and Cwd belong to the context and are
// refused here, and so are Module, Grace and OnEvent. The error is nil whatever the cell does; it wraps [ErrContextEnded] if the
// context had ended before. If ctx ends the cell, the error wraps ctx.Err() and the cause of
// ctx; if closing the context or its runtime does, it wraps [ErrContextEnded] and
// [ErrClosed]. In both cases the Evaluation is returned, too.
func (c *Context) Evaluate(ctx context.Context, code string, o EvaluateOptions) (_ *Evaluation, err error) {
	defer wrap(&err, "evaluate")
	o, globals, err := c.resolve(o)
	if err != nil {
		return nil, err
	}
	if err := c.acquireTurn(ctx); err != nil {
		if errors.Is(err, ErrContextEnded) {
			return nil, err
		}
		return newLogs(nil, o).conclude(&Result{Cause: CauseCanceled}, &cell{}), err
	}
	defer c.leaveTurn()
	c.count++
	name := fmt.Sprintf("cell-%d.js", c.count)
	l := newLogs(c.sources, o)
	p, err := c.compile(ctx, code, o.Timeout)
	switch _, invalid := errors.AsType[*snippet.SyntaxError](err); {
	case invalid:
		return &Evaluation{Error: syntaxError(err, name), Duration: time.Since(l.began)}, nil
	case err != nil && ctx.Err() != nil:
		return l.conclude(&Result{Cause: CauseCanceled}, &cell{}), work.ContextError(ctx)
	case errors.Is(err, errTimeout):
		e := l.conclude(&Result{Cause: CauseTimeout, Duration: time.Since(l.began)}, &cell{})
		e.Cause = CauseNone // the context's process continues
		return e, nil
	case errors.Is(err, ErrContextEnded):
		<-c.Done()
		return l.conclude(&Result{Cause: CauseCanceled}, &cell{}), c.err
	case err != nil:
		return nil, err
	}
	c.sources.Add(name, p, code)
	for name, d := range p.Declares {
		if _, known := c.declared[name]; len(name) <= maxName && (known || len(c.declared) < maxDeclared) {
			c.declared[name] = d
		}
	}
	message := guest.Cell{
		Code: p.Code(), Name: name, Value: o.MaxOutput, Globals: globals,
		Evaluate: guest.Evaluate{LogBounds: guest.LogBounds{Logs: o.MaxLogs, LogLength: o.MaxLogLength}, Form: string(o.Form), Explicit: p.Explicit},
	}
	return c.perform(ctx, c.newCell(o.MaxOutput, l), message)
}

// compile compiles a cell. The end of the context, and the cell's timeout, end it.
func (c *Context) compile(ctx context.Context, code string, timeout time.Duration) (*snippet.Program, error) {
	limit, cancel := until(ctx, c.process.limit, ErrContextEnded)
	defer cancel(nil)
	limit, _ = c.rt.pausing.withTimeout(limit, timeout)
	declared := map[string]snippet.Declared{}
	for name, d := range c.declared {
		if strings.Contains(code, name) {
			declared[name] = d
		}
	}
	return c.rt.opts.work.Compile(limit, work.Source{Code: []byte(code), Cell: true, Declared: declared})
}

// maxDeclared is how many names of cells a context remembers. V8 may refuse to declare others again.
const maxDeclared = 10_000

// newCell returns the cell for the next frame.
//
// Preconditions: the caller holds c.turn.
func (c *Context) newCell(maxValue int64, l *logs) *cell {
	c.number++
	return &cell{number: c.number, maxValue: maxValue, logs: l, done: make(chan struct{})}
}

// resolve checks a cell's options and fills in defaults.
func (c *Context) resolve(o EvaluateOptions) (_ EvaluateOptions, globals string, err error) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"Heap", o.Heap != 0}, {"Module", o.Module}, {"Grace", o.Grace != 0}, {"OnEvent", o.OnEvent != nil}, {"Permissions", !o.Permissions.IsZero()}, {"Env", len(o.Env) > 0}, {"Cwd", o.Cwd != ""},
	} {
		if f.given {
			return o, "", optionError(f.name, "it is the context's")
		}
	}
	if o, err = o.resolve(c.rt.opts.Limits); err != nil {
		return o, "", err
	}
	o.Heap = c.options.Heap
	given, err := c.rt.opts.newBindings(o.Globals)
	if err != nil {
		return o, "", optionError("Globals", "%w", err)
	}
	if len(given.Functions) > 0 {
		return o, "", optionError("Globals", "%s is a function: a context uses the functions of ContextOptions.Globals", given.Functions[0].Name())
	}
	globals, err = given.Values()
	return o, globals, err
}

// perform makes the guest evaluate a cell, and returns the result.
//
// Preconditions: the caller holds c.turn.
func (c *Context) perform(ctx context.Context, cl *cell, message guest.Cell) (*Evaluation, error) {
	run := c.process
	denied, _ := run.denials.Since(nil)
	used, _ := run.usage()                // zero if it has just ended
	if calls := run.calls; calls != nil { // the limit and the list are the cell's
		calls.Reset(cl.logs.options.MaxCalls)
	}
	for _, s := range []stdio.Sink{c.streams.Out, c.streams.Err} {
		s.(*stdio.Lines).SetMax(message.LogLength)
	}
	for _, l := range c.cells.ordered.lines {
		l.SetMax(message.LogLength)
	}
	cause, err := c.exchange(ctx, cl, message, cl.logs.options.Timeout)
	if err != nil {
		return nil, err
	}
	res, err := c.outcome(cl, cause)
	if err != nil {
		return nil, err
	}
	now, err := run.usage()
	if err != nil {
		return nil, err
	}
	now.CPU -= used.CPU
	now.Network = now.Network.minus(used.Network)
	res.Usage, res.Duration = now, time.Since(cl.logs.began)
	if cl.failure != nil {
		run.addErrorHint(cl.failure)
		run.addLimits(allMessages(cl.failure), 0)
	}
	run.addDenials(res, denied)
	return c.conclude(cl, res), c.cancellation(ctx, res.Cause)
}

// cancellation returns the error beside an evaluation: why a cell was canceled, or nil.
func (c *Context) cancellation(ctx context.Context, cause Cause) error {
	switch {
	case cause != CauseCanceled:
		return nil
	case ctx.Err() != nil:
		return work.ContextError(ctx)
	case errors.Is(c.Err(), ErrClosed):
		return c.Err()
	}
	return nil
}

// exchange sends a cell and waits for its end, or that of the process. It returns why it
// interrupted the cell, if it did. A request for completions is not interrupted, because it
// must not harm the context: the next cell begins after it.
func (c *Context) exchange(ctx context.Context, cl *cell, message any, timeout time.Duration) (Cause, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return CauseNone, err
	}
	limit, stop := c.rt.pausing.withTimeout(ctx, timeout)
	defer stop()
	isCompletion := cl.logs == nil
	if c.late != nil && !c.await(limit, c.late) {
		if !isCompletion {
			c.interrupt(c.late)
			close(cl.done) // it has not begun
		}
		cause, _ := endReason(limit)
		return cause, nil
	}
	c.late = nil
	c.cells.begin(cl) // before the guest can answer
	c.send(wire.AppendCell(make([]byte, 0, len(text)+16), cl.number, text))
	switch {
	case c.await(limit, cl):
		return CauseNone, nil
	case isCompletion:
		c.late = cl
	default:
		c.interrupt(cl)
	}
	cause, _ := endReason(limit)
	return cause, nil
}

// await waits for the end of a cell, or that of the process. It returns false if limit ends
// first.
func (c *Context) await(limit context.Context, cl *cell) bool {
	select {
	case <-cl.done:
	case <-c.Done():
	case <-limit.Done():
		return false
	}
	return true
}

// send sends a frame. It does not wait for a guest that does not read.
func (c *Context) send(frame []byte) { go c.process.control.out.Send(frame) }

// interruptions are the ways to interrupt a cell, in the order in which they are tried, each
// with the time that it gets.
var interruptions = []struct {
	patience time.Duration
	try      func(*Context, *cell)
}{
	// A waiting cell ends; the operation that it awaits continues.
	{100 * time.Millisecond, func(c *Context, cl *cell) { c.send(wire.AppendInterrupt(nil, cl.number)) }},
	// Node terminates the cell's script.
	{400 * time.Millisecond, func(c *Context, _ *cell) { _ = c.process.child.Signal(unix.SIGINT, false) }},
	// Child processes that it waits for get the signal, too.
	{1500 * time.Millisecond, func(c *Context, _ *cell) { _ = c.process.child.Signal(unix.SIGINT, true) }},
}

// interrupt ends a cell, and if necessary the process. It waits for the end.
func (c *Context) interrupt(cl *cell) {
	for _, i := range interruptions {
		if c.rt.Paused() { // it would not react
			break
		}
		i.try(c, cl)
		select {
		case <-cl.done:
			return
		case <-c.Done():
			return
		case <-time.After(i.patience):
		}
	}
	c.stop(fmt.Errorf("cell %d could not be interrupted", cl.number))
	<-c.Done()
}

// outcome returns the result of a cell, or of the process if that has ended. cause is why the
// cell was interrupted, if it was.
func (c *Context) outcome(cl *cell, cause Cause) (*Result, error) {
	res := &Result{}
	select {
	case <-cl.done:
		if f, ok := c.process.child.(sandbox.Flusher); ok {
			f.Flush()
		}
		c.streams.Flush()
	default: // the process has ended, and all of its output has been read
		var err error
		if res, err = c.process.outcome(); res == nil {
			return nil, err
		}
	}
	res.Value, res.Calls = cl.value, nil
	if cause != CauseNone {
		res.Cause = cause
	}
	c.process.addCalls(res)
	for i := range res.Calls {
		if res.Calls[i].Error == hostcall.Unanswered {
			res.Calls[i].Error = "the cell ended first"
		}
	}
	return res, nil
}

// conclude makes the evaluation of a cell's result. Its Error reports if the process has ended.
func (c *Context) conclude(cl *cell, res *Result) *Evaluation {
	e := cl.logs.conclude(res, cl)
	if isClosed(cl.done) {
		e.Cause = CauseNone
		return e
	}
	if e.Error == nil {
		e.Error = &GuestError{Name: "ExitError", Message: fmt.Sprintf("the code ended its process with exit code %d", res.ExitCode)}
	}
	e.Error.Message += ". The context has ended" + c.reasonText() + ", and what its variables held is lost"
	return e
}

// reasonText returns why we ended the process, in parentheses, or "".
func (c *Context) reasonText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", c.reason)
}
