package service

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// maxCells bounds the cells of a context that are evaluated or wait, and its other requests.
const maxCells = 16

// Context is a Node process of a sandbox that keeps the declarations of its cells.
type Context struct {
	program
	context *runtime.Context

	mu    sync.Mutex
	cells map[*cell]struct{}
}

// cell is a cell that is evaluated or waits.
type cell struct{ cancel context.CancelCauseFunc }

// NewContext starts a context. It lives until it is deleted, exits, exceeds a limit or is not used for its idle timeout, or
// its sandbox ends. If the client wants events, the request lasts until the context has ended, and the end of the request
// ends the context.
func (sb *Sandbox) NewContext(ctx context.Context, call *Call, in *requestjson.ContextIn) (*resultjson.ContextInfo, error) {
	o, err := sb.contextOptions(in.ContextRequest, call)
	if err != nil {
		return nil, err
	}
	audit.Of(ctx).SetPermissions(in.Permissions)
	var started *runtime.Context
	common, err := sb.start(ctx, "c-", func(ctx context.Context) (err error) {
		started, err = sb.runtime.NewContext(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &Context{program: common, context: started, cells: map[*cell]struct{}{}}
	sb.longLived.add(c)
	go func() {
		<-started.Done()
		_ = started.Close() // stops its timer; the reason of its end stays
		c.release()
		c.retain(4 * eventSize)
	}()
	if call.To != nil {
		// The context lasts until it or ctx ends, and is forgotten.
		if err := call.To(Event{Name: EventStarted, Data: c.Info()}); err == nil {
			select {
			case <-c.ended:
			case <-ctx.Done():
			}
		}
		_, err := c.Delete(ctx, call, nil)
		return c.Info(), cmp.Or(err, context.Cause(ctx))
	}
	return c.Info(), nil
}

func (sb *Sandbox) contextOptions(r requestjson.ContextRequest, c *Call) (o runtime.ContextOptions, err error) {
	o = runtime.ContextOptions{Permissions: r.Permissions, Env: r.Env, Cwd: r.Cwd, LastValue: r.LastValue}
	if o.Globals, err = c.bind(r.Globals); err != nil {
		return o, err
	}
	switch {
	case r.MaxIdle && r.IdleTimeoutMs != 0:
		return o, Refuse(Invalid, "idleTimeoutMs and maxIdleTimeout exclude each other")
	case r.MaxIdle || r.IdleTimeoutMs > 0:
		o.IdleTimeout, err = bounded("idleTimeoutMs", r.IdleTimeoutMs, sb.service.settings.Load().LifetimeMs)
	}
	return o, err
}

// Context returns a context of the sandbox.
func (sb *Sandbox) Context(id string) (*Context, error) { return find[*Context](sb, "context", id) }

// FindContext returns the sandbox of a context of the tenant that has not ended.
func (s *Service) FindContext(t *tenant.Tenant, id string) (sandbox string, err error) {
	for _, sb := range s.ofTenant(t) {
		if c, err := sb.Context(id); err == nil && c.Info().State != resultjson.Ended {
			return sb.ID, nil
		}
	}
	return "", Refuse(NotFound, "no context %q", id)
}

// ContextList is a list of contexts.
type ContextList struct {
	Contexts []*resultjson.ContextInfo `json:"contexts"`
}

// ListContexts describes the contexts of the sandbox, the oldest first.
func (sb *Sandbox) ListContexts(context.Context, *Call, *requestjson.InSandbox) (ContextList, error) {
	return ContextList{describe(sb, (*Context).Info)}, nil
}

// Get describes the context.
func (c *Context) Get(context.Context, *Call, *requestjson.InContext) (*resultjson.ContextInfo, error) {
	return c.Info(), nil
}

// Info describes the context.
func (c *Context) Info() *resultjson.ContextInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := &resultjson.ContextInfo{ID: c.ID, State: resultjson.Running, Created: c.started, Cells: len(c.cells)}
	if err := c.context.Err(); err != nil {
		info.State, info.Reason = resultjson.Ended, err.Error()
		if exit, ok := errors.AsType[*runtime.ExitError](err); ok {
			info.Exit = &exit.Code
		}
	}
	return info
}

// errInterrupted is why a cell ends that Interrupt has canceled.
var errInterrupted = errors.New("the cell was interrupted")

// begin counts a cell, or another request that waits for its turn like one. The returned context
// also ends with Interrupt.
func (c *Context) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cells) >= maxCells {
		return nil, nil, exceeded("%d cells already wait for the context", maxCells)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &cell{cancel}
	c.cells[l] = struct{}{}
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cells, l)
	}, nil
}

// Evaluate evaluates a cell when the earlier ones are done. If ctx ends, the cell is interrupted.
// Of events, there are the lines that it prints.
func (c *Context) Evaluate(ctx context.Context, call *Call, in *requestjson.CellIn) (*runtime.Evaluation, error) {
	if call.Bind != nil {
		return nil, Refuse(Invalid, "functions: a context has them, not its cells")
	}
	o, err := c.sandbox.evaluateOptions(in.Cell, call)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if call.To != nil {
		o.OnLog = func(l runtime.Log) {
			if err := call.To(Event{Name: EventLog, Data: l}); err != nil {
				cancel(err)
			}
		}
	}
	audit.Of(ctx).SetCode(in.Code, nil)
	e, err := c.context.Evaluate(ctx, in.Code, o)
	if e != nil && errors.Is(err, errInterrupted) {
		err = nil
	}
	c.sandbox.service.record(ctx, KindCell, e, err)
	return e, err
}

// Interrupted is the result of [Context.Interrupt].
type Interrupted struct {
	Cells int `json:"cells" doc:"How many there were."`
}

// Interrupt cancels the current cell and the waiting ones.
func (c *Context) Interrupt(context.Context, *Call, *requestjson.InContext) (Interrupted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.cells {
		l.cancel(errInterrupted)
	}
	return Interrupted{len(c.cells)}, nil
}

// Complete returns the names that can complete the last name of a line.
func (c *Context) Complete(ctx context.Context, _ *Call, in *requestjson.CompleteIn) (*resultjson.Completion, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	prefix, names, err := c.context.Complete(ctx, in.Line)
	if err != nil && !errors.Is(err, errInterrupted) {
		return nil, err
	}
	if names == nil {
		names = []string{}
	}
	return &resultjson.Completion{Prefix: prefix, Names: names}, nil
}

// Delete ends the context, and its cells, and forgets it.
func (c *Context) Delete(context.Context, *Call, *requestjson.InContext) (None, error) {
	err := c.context.Close()
	<-c.ended
	c.forget()
	return None{}, err
}
