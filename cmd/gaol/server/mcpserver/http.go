package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/strictjson"
)

const (
	// maxBody bounds a request. Larger files are uploaded by the HTTP API.
	maxBody = 16 << 20

	// maxValues bounds the values of a request: the SDK keeps each of them.
	maxValues = 1 << 16

	// sessionTimeout is how long a session lives without a request.
	sessionTimeout = time.Hour

	// statelessVersion is the first protocol version without sessions.
	statelessVersion = "2026-07-28"

	// VersionHeader is the protocol version of a request.
	VersionHeader = "Mcp-Protocol-Version"

	// StatelessHeader makes requests of any version stateless. The proxy of gaol mcp sends it.
	StatelessHeader = "Gaol-Mcp-Stateless"
)

// requestKey is the context key of the context of an HTTP request that is not part of a session.
type requestKey struct{}

// withRequest ends a call when its HTTP request ends, unless that is part of a session. The SDK does so for the
// newest protocol version only.
func withRequest(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(request, cancel)()
		}
		return next(ctx, method, r)
	}
}

// addHandlers adds the handlers for HTTP. Host and Origin have been checked before.
func (e *endpoint) addHandlers() {
	get := func(*http.Request) *mcp.Server { return e.mcp }
	o := mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, SessionTimeout: sessionTimeout}
	e.stateful = mcp.NewStreamableHTTPHandler(get, &o)
	o.Stateless = true
	e.stateless = mcp.NewStreamableHTTPHandler(get, &o)
}

// ServeHTTP serves a request whose context carries a tenant.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := s.endpoint(tenant.FromContext(r.Context()))
	if e == nil {
		api.WriteProblem(w, http.StatusServiceUnavailable, "the server is being stopped")
		return
	}
	if err := readBody(w, r); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	if r.Header.Get(VersionHeader) >= statelessVersion || r.Header.Get(StatelessHeader) != "" {
		e.stateless.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context())))
	} else {
		e.serveSession(w, r)
	}
}

// readBody reads and checks the body in advance.
func readBody(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	body, err := api.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	if err := strictjson.Check(body, maxValues); err != nil {
		return api.NewProblem(http.StatusBadRequest, "the body: "+err.Error())
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// maxSessions bounds the sessions of one tenant. A new one replaces the session that has been unused
// for the longest time.
const maxSessions = 64

// use is the use of one session.
type use struct {
	session *mcp.ServerSession
	active  int       // requests
	last    time.Time // of the end of one
}

// serveSession serves a request of a protocol version that has sessions.
func (e *endpoint) serveSession(w http.ResponseWriter, r *http.Request) {
	u := e.begin(r.Header.Get("Mcp-Session-Id"), r.Method)
	if u == nil {
		w.Header().Set("Retry-After", "10")
		api.WriteProblem(w, http.StatusTooManyRequests, "all sessions are in use")
		return
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		u.active--
		u.last = time.Now()
	}()
	e.stateful.ServeHTTP(w, r)
}

// begin records a request in a session. If the request begins one and there are too many, it closes the session that
// has been unused for the longest time, or returns nil if all are in use.
func (e *endpoint) begin(id, method string) *use {
	e.mu.Lock()
	defer e.mu.Unlock()
	live := map[string]*use{}
	var oldest *use
	for s := range e.mcp.Sessions() {
		if s.ID() == "" { // of a single request
			continue
		}
		u := cmp.Or(e.uses[s.ID()], &use{session: s})
		live[s.ID()] = u
		if u.active == 0 && (oldest == nil || u.last.Before(oldest.last)) {
			oldest = u
		}
	}
	e.uses = live
	if id == "" && method == http.MethodPost && len(live) >= maxSessions {
		if oldest == nil {
			return nil
		}
		_ = oldest.session.Close() // no request uses it
	}
	u := cmp.Or(live[id], &use{}) // clients can invent any number of ids
	u.active++
	return u
}
