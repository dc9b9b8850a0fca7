package mcpserver

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
)

// endpoint serves one tenant.
type endpoint struct {
	tenant  *tenant.Tenant
	service *service.Service
	server  *Server
	mcp     *mcp.Server

	toolbox   *service.Toolbox // nil without these tools
	stateless *mcp.StreamableHTTPHandler
	stateful  *mcp.StreamableHTTPHandler
	sessions  sessions // of stateful
}

const instructions = `gaol runs untrusted JavaScript and TypeScript in sandboxes on Linux, with Node.js.
run_code without sandboxId uses a fresh sandbox that is deleted afterwards. To keep files between calls, create a sandbox with create_sandbox and pass its sandboxId. To keep variables, too, pass contextId "new" to run_code, and later the contextId of its result.
By default code has no network but the sandbox's own localhost, and only the folders of the sandbox. When something was denied, the result's denials say which permission of create_sandbox would allow it.`

func (s *Server) newEndpoint(t *tenant.Tenant) (*endpoint, error) {
	e := &endpoint{tenant: t, service: s.Service, server: s}
	if s.New != nil {
		e.mcp = s.New()
	} else {
		e.mcp = mcp.NewServer(&mcp.Implementation{Name: "gaol", Title: "gaol sandboxes", Version: s.Version}, &mcp.ServerOptions{
			Instructions: instructions,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
		})
		e.addTools()
		e.addSnippetTools()
		e.addResources()
	}
	if s.SandboxTools {
		if err := e.addSandboxTools(); err != nil {
			return nil, err
		}
	}
	e.mcp.AddReceivingMiddleware(e.recover)
	e.addHandlers()
	return e, nil
}

// recover turns a panic into an error of the request. The SDK calls handlers in goroutines of its own,
// where package http does not do that: one request would end the server.
func (e *endpoint) recover(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				e.server.Log.Error("panic", "method", method, "tenant", e.tenant.Name, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, errors.New("the server failed; its log says why")
			}
		}()
		return next(ctx, method, r)
	}
}

// close ends the sessions, and closes the sandboxes of the toolbox. No call is in progress.
func (e *endpoint) close() error {
	for s := range e.mcp.Sessions() {
		_ = s.Close() // the connection ends, whatever the client says
	}
	if e.toolbox == nil {
		return nil
	}
	return errors.Join(e.toolbox.Close(), runtime.CloseIdle())
}
