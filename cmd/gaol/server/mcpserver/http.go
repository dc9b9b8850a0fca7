package mcpserver

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
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
	problems := &problemWriter{ResponseWriter: w}
	if r.Header.Get(VersionHeader) >= statelessVersion || r.Header.Get(StatelessHeader) != "" {
		e.stateless.ServeHTTP(problems, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context())))
	} else {
		e.serveSession(problems, r)
	}
	problems.finish()
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

// problemWriter turns the errors that the SDK writes as plain text into problem objects. Its other
// responses pass.
type problemWriter struct {
	http.ResponseWriter
	status int // of an error whose text is collected
	text   bytes.Buffer
}

const maxProblem = 1 << 10

func (w *problemWriter) WriteHeader(status int) {
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if status < http.StatusBadRequest || kind != "text/plain" {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
}

func (w *problemWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		return w.ResponseWriter.Write(p)
	}
	w.text.Write(p[:min(len(p), maxProblem-w.text.Len())])
	return len(p), nil
}

// Flush implements [http.Flusher] for streams of events.
func (w *problemWriter) Flush() {
	if w.status == 0 {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client may have gone
	}
}

// Unwrap returns the writer for [http.ResponseController].
func (w *problemWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish writes the collected error.
func (w *problemWriter) finish() {
	if w.status != 0 {
		w.Header().Del("Content-Length")
		api.WriteProblem(w.ResponseWriter, w.status, strings.TrimSpace(w.text.String()))
	}
}

// maxSessions bounds the sessions of one tenant. A new one replaces the session that has been unused
// for the longest time.
const maxSessions = 64

const sessionHeader = "Mcp-Session-Id"

// sessions records the use of a tenant's sessions.
type sessions struct {
	mu   sync.Mutex
	uses map[string]*use
}

// use is the use of one session.
type use struct {
	active int // requests
	last   time.Time
}

// serveSession serves a request of a protocol version that has sessions.
func (e *endpoint) serveSession(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" && r.Method == http.MethodPost && !e.makeRoom() {
		w.Header().Set("Retry-After", "10")
		api.WriteProblem(w, http.StatusTooManyRequests, "all sessions are in use")
		return
	}
	if e.live()[id] != nil { // others are not recorded: clients can invent any number
		defer e.sessions.begin(id)()
	}
	e.stateful.ServeHTTP(w, r)
}

// begin records a request in a session, until the returned function is called.
func (s *sessions) begin(id string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == nil {
		s.uses = map[string]*use{}
	}
	u := s.uses[id]
	if u == nil {
		u = &use{}
		s.uses[id] = u
	}
	u.active++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.active--
		u.last = time.Now()
	}
}

// live returns the tenant's sessions. Sessions of single requests lack an id.
func (e *endpoint) live() map[string]*mcp.ServerSession {
	live := map[string]*mcp.ServerSession{}
	for s := range e.mcp.Sessions() {
		if s.ID() != "" {
			live[s.ID()] = s
		}
	}
	return live
}

// makeRoom closes a session if there are too many. It returns false if all are in use.
func (e *endpoint) makeRoom() bool {
	live := e.live()
	oldest := e.sessions.oldest(live)
	if len(live) < maxSessions {
		return true
	}
	if oldest == nil {
		return false
	}
	_ = oldest.Close() // no request uses it
	return true
}

// oldest returns the session that has been unused for the longest time, nil if all are in use. It
// forgets sessions that have ended.
func (s *sessions) oldest(live map[string]*mcp.ServerSession) (found *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.uses {
		if live[id] == nil && u.active == 0 {
			delete(s.uses, id)
		}
	}
	var since time.Time
	for id, session := range live {
		u := s.uses[id]
		if u == nil { // it has had no request after the first
			return session
		}
		if u.active == 0 && (found == nil || u.last.Before(since)) {
			found, since = session, u.last
		}
	}
	return found
}
