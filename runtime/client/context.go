package client

import (
	"context"
	"errors"
	"fmt"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Context keeps the declarations of its cells, as [runtime.Context] does. It ends with its sandbox
// and with the connection.
type Context struct {
	sandbox *Sandbox
	request *request
	id      string
	ctx     context.Context // ends with the context; its cause is why
}

// NewContext starts a context, as [runtime.NodeRuntime.NewContext] does. Of the options, OnLog and
// Heap are not supported. A negative IdleTimeout means the longest that the server allows. ctx bounds the start only.
func (sb *Sandbox) NewContext(ctx context.Context, o runtime.ContextOptions) (*Context, error) {
	if o.OnLog != nil {
		return nil, wrap("context", unsupported("OnLog"))
	}
	n, host, b, err := sb.c.snippet("", runtime.EvaluateOptions{Globals: o.Globals, Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd, Heap: o.Heap})
	if err != nil {
		return nil, wrap("context", err)
	}
	idle := timeout(o.IdleTimeout)
	in := requestjson.ContextIn{InSandbox: sb.in(), ContextRequest: requestjson.ContextRequest{
		Globals: n.Globals, Permissions: n.Permissions, Env: n.Env, Cwd: n.Cwd, LastValue: o.LastValue, IdleTimeoutMs: idle.Ms, MaxIdle: idle.Max,
	}}
	m := message{Request: session.Request{Method: "createContext", Host: encodeHost(host)}, doing: "context", in: in}
	r, info, end, err := open[resultjson.ContextInfo](ctx, sb.c, m)
	if err != nil {
		b.release()
		return nil, err
	}
	alive, cancel := context.WithCancelCause(context.Background())
	c := &Context{sandbox: sb, request: r, id: info.ID, ctx: alive}
	sb.c.work.Go(func() {
		defer b.release()
		defer end()
		cancel(fmt.Errorf("%w: %w", runtime.ErrContextEnded, r.contextEnd()))
	})
	return c, nil
}

// contextEnd waits for the end of a context, and returns why it has ended.
func (r *request) contextEnd() error {
	info, err := outcome[resultjson.ContextInfo](r)
	switch {
	case err != nil:
		return err
	case info.Exit != nil:
		return &runtime.ExitError{Code: *info.Exit}
	}
	return errors.New(info.Reason)
}

// Evaluate evaluates a cell, as [runtime.Context.Evaluate] does.
func (c *Context) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	if o.OnEvent != nil {
		return nil, wrap("evaluate", unsupported("OnEvent"))
	}
	e, err := c.sandbox.c.evaluate(ctx, code, o, func(n requestjson.Snippet) (string, any) {
		return "evaluateCell", requestjson.CellIn{InContext: c.in(), Cell: n.Cell}
	})
	return e, c.ended(err)
}

// ended adds to an error that the context has ended.
func (c *Context) ended(err error) error {
	if !isGone(err) {
		return err
	}
	return fmt.Errorf("%w: %w", runtime.ErrContextEnded, err)
}

// in names the context in requests.
func (c *Context) in() requestjson.InContext {
	return requestjson.InContext{InSandbox: c.sandbox.in(), Context: c.id}
}

// Complete returns the names that can complete the last name of a line of code, as
// [runtime.Context.Complete] does.
func (c *Context) Complete(ctx context.Context, line string) (prefix string, names []string, err error) {
	found, err := get[resultjson.Completion](ctx, c.sandbox.c, "completeInContext", "complete", requestjson.CompleteIn{InContext: c.in(), Line: line})
	return found.Prefix, found.Names, c.ended(err)
}

// Close ends the context, and the current cell. It returns when nothing is left of the process.
func (c *Context) Close() error {
	if c.Err() == nil {
		c.request.cancel()
		<-c.Done()
	}
	return nil
}

// Done returns a channel that is closed when the context has ended.
func (c *Context) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil until Done is closed, and then why the context has ended. It wraps
// [runtime.ErrContextEnded].
func (c *Context) Err() error { return context.Cause(c.ctx) }
