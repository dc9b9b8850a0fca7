package mcpserver

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/cmd/gaol/server/tenant"
)

// Options are the options of a [Server].
type Options struct {
	Service *service.Service
	Version string

	// Snippets runs snippets.
	Snippets *snippetservice.Service

	Log *slog.Logger

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

// errClosing is the error of requests while the server is being stopped.
var errClosing = errors.New("the server is being stopped")

// endpoint returns what serves a tenant.
func (s *Server) endpoint(t *tenant.Tenant) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosing
	}
	e := s.tenants[t.Name]
	if e == nil {
		var err error
		if e, err = s.newEndpoint(t); err != nil {
			return nil, err
		}
		s.tenants[t.Name] = e
	}
	return e, nil
}

// MCP returns the MCP server of a tenant, to serve it on another transport than HTTP.
func (s *Server) MCP(t *tenant.Tenant) (*mcp.Server, error) {
	e, err := s.endpoint(t)
	if err != nil {
		return nil, err
	}
	return e.mcp, nil
}

// Close ends all sessions, and closes the sandboxes of the tools of package sandboxtools. The
// service, which has been closed before, has ended all calls.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var errs []error
	for _, e := range s.tenants { // no more are added
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}
