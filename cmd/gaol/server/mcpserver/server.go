package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// Options are the options of a [Server].
type Options struct {
	Service *service.Service
	Version string

	// SandboxTools adds the tools of package sandboxtools.
	SandboxTools bool

	// New replaces the MCP server of each tenant in tests.
	New func() *mcp.Server
}

// Server serves MCP to tenants.
type Server struct {
	Options

	mu      sync.Mutex
	closed  bool
	tenants map[string]*endpoint
}

// New returns a server. The caller closes it after the service.
func New(o Options) *Server {
	return &Server{Options: o, tenants: map[string]*endpoint{}}
}

// endpoint returns the endpoint of a tenant, nil while the server is being stopped.
func (s *Server) endpoint(t *tenant.Tenant) *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	e := s.tenants[t.Name]
	if e == nil {
		e = s.newEndpoint(t)
		s.tenants[t.Name] = e
	}
	return e
}

// Close ends all sessions. The service, which has been closed before, has ended all calls and closed all sandboxes.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, e := range s.tenants { // no more are added
		for session := range e.mcp.Sessions() {
			_ = session.Close() // the connection ends, whatever the client replies
		}
	}
}

// endpoint serves one tenant.
type endpoint struct {
	tenant  *tenant.Tenant
	service *service.Service
	mcp     *mcp.Server

	stateless *mcp.StreamableHTTPHandler
	stateful  *mcp.StreamableHTTPHandler

	mu     sync.Mutex
	active map[string]int // requests in the sessions of stateful, by id
}

const instructions = `gaol runs untrusted JavaScript and TypeScript in sandboxes on Linux, with Node.js.
run_code without sandboxId uses a fresh sandbox that is deleted afterwards. To keep files between calls, create a sandbox with create_sandbox and pass its sandboxId. To keep variables, too, pass contextId "new" to run_code, and later the contextId of its result.
By default code reaches no network but the sandbox's own localhost, and only the folders of the sandbox. When something was denied, the result's denials name the permission of create_sandbox that would allow it.`

func (s *Server) newEndpoint(t *tenant.Tenant) *endpoint {
	e := &endpoint{tenant: t, service: s.Service, active: map[string]int{}}
	if s.New != nil {
		e.mcp = s.New()
	} else {
		e.mcp = mcp.NewServer(&mcp.Implementation{Name: "gaol", Title: "gaol sandboxes", Version: s.Version}, &mcp.ServerOptions{
			Instructions: instructions,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
		})
		for _, t := range tools() {
			if t.Name != linkTool || !s.Service.Settings().Playground.Off {
				e.add(t)
			}
		}
		e.addResources()
	}
	if s.SandboxTools {
		e.addSandboxTools()
	}
	e.mcp.AddReceivingMiddleware(e.receive)
	e.addHandlers()
	return e
}
