package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// contextParams are those of context.
type contextParams struct {
	SandboxParams
	FunctionParams
	service.Snippet
	Code          string `json:"code,omitempty" maxLength:"0" doc:"Cells have it."`
	Form          string `json:"form,omitempty" maxLength:"0" doc:"Cells have it."`
	LastValue     bool   `json:"lastValue,omitempty" doc:"Keep the value of the last cell in globalThis._."`
	IdleTimeoutMs int64  `json:"idleTimeoutMs,omitempty" minimum:"0" doc:"How long it waits for a cell. By default 600,000."`
	MaxIdle       bool   `json:"maxIdleTimeout,omitempty" doc:"Instead of idleTimeoutMs: as long as the server allows."`
}

// contextEnd is the result of context.
type contextEnd struct {
	Reason   string `json:"reason"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

// openContext starts a context, and returns when it has ended. Canceling the request closes it.
func openContext(t *task, p contextParams) (any, error) {
	sb, err := t.service.Acquire(t.tenant, p.Sandbox)
	if err != nil {
		return nil, err
	}
	defer sb.Release()
	e, err := t.snippetOptions(sb, p.Snippet, p.FunctionParams, false)
	if err != nil {
		return nil, err
	}
	most := t.service.Settings().LifetimeMs
	switch {
	case p.MaxIdle && p.IdleTimeoutMs != 0:
		return nil, service.Invalidf("maxIdleTimeout and idleTimeoutMs exclude each other")
	case p.MaxIdle:
		p.IdleTimeoutMs = most
	case p.IdleTimeoutMs > most:
		return nil, service.Invalidf("idleTimeoutMs: %d is more than the server's %d", p.IdleTimeoutMs, most)
	}
	o := runtime.ContextOptions{
		Globals: e.Globals, IdleTimeout: time.Duration(p.IdleTimeoutMs) * time.Millisecond, LastValue: p.LastValue,
		Permissions: e.Permissions, Env: e.Env, Cwd: e.Cwd,
	}
	t.recordSnippet(p.Sandbox, p.Snippet)
	var ended error
	err = sb.Work(t.ctx, "run a context", func(ctx context.Context) error {
		c, err := sb.NodeRuntime.NewContext(ctx, o)
		if err != nil {
			return err
		}
		ended, err = t.keep(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return endOf(ended), nil
}

// keep keeps a context until it or its task ends, and returns why it has ended.
func (t *task) keep(ctx context.Context, c *runtime.Context) (ended, err error) {
	t.started.Lock()
	t.context = c
	t.started.Unlock()
	if t.event(startedEvent{Type: "started"}) == nil {
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
	}
	err = c.Close()
	return c.Err(), err
}

func endOf(err error) contextEnd {
	e := contextEnd{Reason: fmt.Sprint(err)}
	if exit, ok := errors.AsType[*runtime.ExitError](err); ok {
		e.ExitCode = &exit.Code
	}
	return e
}

// InContext names a context by the request that has opened it.
type InContext struct {
	Context uint32 `json:"context" minimum:"1"`
}

func (t *task) contextOf(id uint32) (*runtime.Context, error) {
	if other := t.task(id); other != nil {
		other.started.Lock()
		defer other.started.Unlock()
		if other.context != nil {
			return other.context, nil
		}
	}
	return nil, service.NotFoundf("no context %d", id)
}

// cellParams are those of cell.
type cellParams struct {
	InContext
	FunctionParams
	SandboxParams
	service.Snippet
	MaxTimeout bool `json:"maxTimeout,omitempty" doc:"Instead of timeoutMs: as long as the server allows."`
	Logs       bool `json:"logs,omitempty" doc:"Send each line of the result's logs as it is printed."`
}

// cell evaluates a cell of a context.
func cell(t *task, p cellParams) (_ any, err error) {
	if p.TimeoutMs, err = t.timeout(p.TimeoutMs, p.MaxTimeout); err != nil {
		return nil, err
	}
	if len(p.Functions) > 0 {
		return nil, service.Invalidf("functions: a context has them, not its cells")
	}
	sb, err := t.service.Acquire(t.tenant, p.Sandbox)
	if err != nil {
		return nil, err
	}
	defer sb.Release()
	c, err := t.contextOf(p.Context)
	if err != nil {
		return nil, err
	}
	o, err := t.snippetOptions(sb, p.Snippet, p.FunctionParams, p.Logs)
	if err != nil {
		return nil, err
	}
	t.recordSnippet(p.Sandbox, p.Snippet)
	e, err := c.Evaluate(t.ctx, p.Code, o)
	sb.RecordEvaluation(t.ctx, service.KindCell, e, err)
	if err = t.unlessCanceled(err, e != nil); err != nil {
		return nil, sb.Failed("evaluate a cell", err)
	}
	return resultjson.NewEvaluation(e), nil
}

// completeParams are those of complete.
type completeParams struct {
	InContext
	SandboxParams
	Line string `json:"line" maxLength:"65536"`
}

// completion is the result of complete.
type completion struct {
	Prefix string   `json:"prefix"`
	Names  []string `json:"names"`
}

func complete(t *task, p completeParams) (any, error) {
	sb, err := t.service.Acquire(t.tenant, p.Sandbox)
	if err != nil {
		return nil, err
	}
	defer sb.Release()
	c, err := t.contextOf(p.Context)
	if err != nil {
		return nil, err
	}
	prefix, names, err := c.Complete(t.ctx, p.Line)
	if err != nil {
		return nil, sb.Failed("complete a line", err)
	}
	return completion{prefix, append([]string{}, names...)}, nil
}
