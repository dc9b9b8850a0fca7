package mcpserver

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/strictjson"
)

const (
	// maxBody bounds a request. Larger files are uploaded by the HTTP API.
	maxBody = 16 << 20

	// maxValues bounds the values of a request: the SDK keeps each of them.
	maxValues = 1 << 16

	// bodyTimeout is how long a request may take to arrive.
	bodyTimeout = 30 * time.Second

	// sessionTimeout is how long a session lives without a request.
	sessionTimeout = time.Hour

	// statelessVersion is the first protocol version without sessions.
	statelessVersion = "2026-07-28"
)

// addHandlers adds the handlers for HTTP. Host and Origin have been checked before.
func (e *endpoint) addHandlers() {
	get := func(*http.Request) *mcp.Server { return e.mcp }
	o := mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, SessionTimeout: sessionTimeout}
	e.stateful = mcp.NewStreamableHTTPHandler(get, &o)
	o.Stateless, o.PropagateRequestCancellation = true, true
	e.stateless = mcp.NewStreamableHTTPHandler(get, &o)
}

// ServeHTTP serves a request whose context has a tenant.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := s.endpoint(tenant.FromContext(r.Context()))
	switch {
	case errors.Is(err, errClosing):
		api.WriteProblem(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		s.Log.Error("start an MCP server", "err", err)
		api.WriteProblem(w, http.StatusInternalServerError, "the server failed to start MCP; its log says why")
		return
	}
	if p := readBody(w, r); p != nil {
		p.Write(w)
		return
	}
	problems := &problemWriter{ResponseWriter: w}
	if r.Header.Get("Mcp-Protocol-Version") >= statelessVersion {
		e.stateless.ServeHTTP(problems, r)
	} else {
		e.serveSession(problems, r)
	}
	problems.finish()
}

// readBody reads the body in advance, in bounded time.
func readBody(w http.ResponseWriter, r *http.Request) *api.Problem {
	if r.Method != http.MethodPost {
		return nil
	}
	c := http.NewResponseController(w)
	if err := c.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return api.NewProblem(http.StatusInternalServerError, "the connection has no deadlines")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	refused, overQuota := errors.AsType[*service.Error](err)
	switch {
	case tooLarge:
		return api.NewProblem(http.StatusRequestEntityTooLarge, "a request has at most 16 MiB; upload larger files by PUT on /v1")
	case overQuota:
		return api.ProblemOf(refused)
	case err == nil:
		err = strictjson.Check(body, maxValues)
	case !errors.As(err, new(*strictjson.ValuesError)):
		return api.NewProblem(http.StatusRequestTimeout, "the body did not arrive")
	}
	if err != nil {
		return api.NewProblem(http.StatusBadRequest, "the body: "+err.Error())
	}
	_ = c.SetReadDeadline(time.Time{}) // it has worked above
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
