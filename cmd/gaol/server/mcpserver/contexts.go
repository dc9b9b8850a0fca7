package mcpserver

import (
	"context"
	"fmt"

	"gaol/cmd/gaol/server/service"
)

// newContext is the contextId that asks for a new context.
const newContext = "new"

// liveContext is a context in a sandbox, which the caller releases.
type liveContext struct {
	context *service.Context
	sb      *service.Sandbox
}

// findContext returns a context. If the call names a sandbox, it must be the context's.
func (e *endpoint) findContext(id, sandbox string) (*liveContext, error) {
	c, sb, err := e.service.FindContext(e.tenant, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no context %.64q: it has ended or never existed. Its variables are lost; pass contextId %q for a new one", id, newContext)
	case sandbox != "" && sandbox != sb.ID:
		sb.Release()
		return nil, fmt.Errorf("context %q is in sandbox %q, not in %.64q: omit sandboxId", id, sb.ID, sandbox)
	}
	return &liveContext{c, sb}, nil
}

// open creates a context in a sandbox, or in a new one.
func (e *endpoint) open(ctx context.Context, sandbox string) (*liveContext, error) {
	created := sandbox == ""
	if created {
		info, err := e.service.CreateSandbox(ctx, e.tenant, service.SandboxRequest{}, service.Streams{})
		if err != nil {
			return nil, e.explain(err)
		}
		sandbox = info.ID
	}
	live, err := e.openIn(ctx, sandbox)
	if err != nil && created {
		_ = e.service.Delete(e.tenant, sandbox) // the error is more important
	}
	return live, err
}

func (e *endpoint) openIn(ctx context.Context, sandbox string) (*liveContext, error) {
	sb, err := e.acquire(sandbox)
	if err != nil {
		return nil, err
	}
	c, err := sb.NewContext(ctx, service.ContextRequest{}, service.Streams{})
	if err != nil {
		sb.Release()
		return nil, e.explain(err)
	}
	return &liveContext{c, sb}, nil
}
