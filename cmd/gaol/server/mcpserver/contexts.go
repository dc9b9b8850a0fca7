package mcpserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
)

// newContext is the contextId that asks for a new context.
const newContext = "new"

// contexts are a tenant's contexts.
type contexts struct {
	mu   sync.Mutex
	byID map[string]*liveContext
}

// liveContext is a context in a sandbox, which does not expire meanwhile.
type liveContext struct {
	*runtime.Context
	id string
	sb *service.Sandbox
}

// add adds a context until it ends. It takes over the caller's use of the sandbox.
func (c *contexts) add(sb *service.Sandbox, created *runtime.Context) *liveContext {
	live := &liveContext{created, "ctx-" + strings.ToLower(rand.Text()), sb}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]*liveContext{}
	}
	c.byID[live.id] = live
	go func() {
		<-created.Done()
		c.mu.Lock()
		delete(c.byID, live.id)
		c.mu.Unlock()
		sb.Release()
	}()
	return live
}

// find returns a context. If the call names a sandbox, it must be the context's.
func (c *contexts) find(id, sandbox string) (*liveContext, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.byID[id]
	switch {
	case live == nil:
		return nil, fmt.Errorf("no context %.64q: it has ended or never existed. Its variables are lost; pass contextId %q for a new one", id, newContext)
	case sandbox != "" && sandbox != live.sb.ID:
		return nil, fmt.Errorf("context %q is in sandbox %q, not in %.64q: omit sandboxId", id, live.sb.ID, sandbox)
	}
	return live, nil
}

// open creates a context in a sandbox, or in a new one.
func (e *endpoint) open(ctx context.Context, sandbox string) (*liveContext, error) {
	created := sandbox == ""
	if created {
		info, err := e.service.CreateSandbox(ctx, e.tenant, service.SandboxRequest{})
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
	c, err := sb.OpenContext(ctx, runtime.ContextOptions{})
	if err != nil {
		sb.Release()
		return nil, e.explain(err)
	}
	return e.contexts.add(sb, c), nil
}
