package mcpserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/strictjson"
)

// Options are the options of a [Server].
type Options struct {
	Service *service.Service
	Version string

	// SandboxTools adds the tools of package sandboxtools.
	SandboxTools bool

	// Router finds the nodes of a fleet. Nil: there are none.
	Router Router

	// New replaces the MCP server of each tenant in tests.
	New func() *mcp.Server
}

// Router finds the nodes of a fleet that serve requests. Package fleet implements it.
type Router interface {
	// NewID returns an id of an MCP session, which names this node.
	NewID(prefix string) string

	// MCPTarget returns the node that serves a request with the id of an MCP session, which may be empty; "": this node, which keeps
	// the sandbox until leave is called. If alone is true, the request is not part of the session there.
	MCPTarget(ctx context.Context, t *tenant.Tenant, session string, body []byte) (node string, alone bool, leave func())

	Forward(w http.ResponseWriter, r *http.Request, node string)
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
		o := &mcp.ServerOptions{
			Instructions: instructions,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
		}
		if s.Router != nil {
			o.GetSessionID = func() string { return s.Router.NewID("mcp-") }
		}
		e.mcp = mcp.NewServer(&mcp.Implementation{Name: "gaol", Title: "gaol sandboxes", Version: s.Version}, o)
		for _, t := range tools() {
			if t.Name != linkTool || !s.Service.Settings().Playground.Off {
				e.add(t)
			}
		}
		e.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			Name: "sandbox_file", Title: "File of a sandbox", URITemplate: uriScheme + "{id}/{+path}",
			Description: "A file of one of your sandboxes, by its absolute path. Output that is too long for a result is such a file.",
		}, e.readResource)
	}
	if s.SandboxTools {
		e.addSandboxTools()
	}
	e.mcp.AddReceivingMiddleware(e.receive)
	get := func(*http.Request) *mcp.Server { return e.mcp }
	// Host and Origin have been checked before.
	o := mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, SessionTimeout: sessionTimeout}
	e.stateful = mcp.NewStreamableHTTPHandler(get, &o)
	o.Stateless = true
	e.stateless = mcp.NewStreamableHTTPHandler(get, &o)
	return e
}

const (
	// maxBody bounds a request. Larger files are uploaded by the HTTP API.
	maxBody = 16 << 20

	// maxValues bounds the values of a request: the SDK keeps each of them.
	maxValues = 1 << 16

	// sessionTimeout is how long a session lives without a request.
	sessionTimeout = time.Hour

	// statelessVersion is the first protocol version without sessions.
	statelessVersion = "2026-07-28"

	// versionHeader is the protocol version of a request.
	versionHeader = "Mcp-Protocol-Version"

	// sessionHeader is the id of an MCP session.
	sessionHeader = "Mcp-Session-Id"

	// StatelessHeader makes requests of any version stateless. The proxy of gaol mcp sends it.
	StatelessHeader = "Gaol-Mcp-Stateless"
)

// requestKey is the context key of the context of an HTTP request that is not part of a session.
type requestKey struct{}

// receive ends a call when its HTTP request ends, unless that is part of a session: the SDK does so for the newest
// protocol version only. It also recovers panics: the SDK calls handlers in other goroutines, where package http does not
// do that.
func (e *endpoint) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (_ mcp.Result, err error) {
		defer e.service.Recover(ctx, method, e.tenant, &err)
		if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(request, cancel)()
		}
		return next(ctx, method, r)
	}
}

// ServeHTTP serves a request whose context carries a tenant.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	if s.Router != nil {
		node, alone, leave := s.Router.MCPTarget(r.Context(), tenant.FromContext(r.Context()), r.Header.Get(sessionHeader), body)
		defer leave()
		if alone {
			r.Header.Set(StatelessHeader, "1")
			r.Header.Del(sessionHeader)
		}
		if node != "" {
			s.Router.Forward(w, r, node)
			return
		}
	}
	e := s.endpoint(tenant.FromContext(r.Context()))
	if e == nil {
		api.WriteProblem(w, http.StatusServiceUnavailable, "the server is being stopped")
		return
	}
	if r.Header.Get(versionHeader) >= statelessVersion || r.Header.Get(StatelessHeader) != "" {
		e.stateless.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context())))
	} else {
		e.serveSession(w, r)
	}
}

// readBody reads and checks the body in advance.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, nil
	}
	body, err := api.ReadBody(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Check(body, maxValues); err != nil {
		return nil, api.NewProblem(http.StatusBadRequest, "the body: "+err.Error())
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// maxSessions bounds the sessions of one tenant. A new one replaces the oldest that no request uses.
const maxSessions = 64

// serveSession serves a request of a protocol version that has sessions.
func (e *endpoint) serveSession(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if !e.begin(id, r.Method) {
		w.Header().Set("Retry-After", "10")
		api.WriteProblem(w, http.StatusTooManyRequests, "all sessions are in use")
		return
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.active[id]--; e.active[id] == 0 {
			delete(e.active, id)
		}
	}()
	e.stateful.ServeHTTP(w, r)
}

// begin counts a request in a session. If the request begins one and there are too many, it closes another, or returns
// false if all are in use.
func (e *endpoint) begin(id, method string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id == "" && method == http.MethodPost {
		count, idle := 0, (*mcp.ServerSession)(nil)
		for s := range e.mcp.Sessions() { // the oldest first
			if s.ID() == "" { // of a single request
				continue
			}
			if count++; idle == nil && e.active[s.ID()] == 0 {
				idle = s
			}
		}
		switch {
		case count < maxSessions:
		case idle == nil:
			return false
		default:
			_ = idle.Close() // no request uses it
		}
	}
	e.active[id]++
	return true
}
