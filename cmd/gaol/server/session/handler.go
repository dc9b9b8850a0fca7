package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/coder/websocket"
	"golang.org/x/net/http/httpguts"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/session"
)

// Handler serves sessions. Its requests must have a tenant.
type Handler struct {
	service *service.Service

	ctx    context.Context // of all sessions
	cancel context.CancelCauseFunc

	mu   sync.Mutex // excludes new sessions while Close waits
	open sync.WaitGroup
}

// New returns a handler. The caller closes it after the service.
func New(s *service.Service) *Handler {
	h := &Handler{service: s}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

var (
	errStopped  = errors.New("the server is being stopped")
	errShutdown = fmt.Errorf("%w: %w", errStopped, context.Canceled) // the cause of what that ends
)

// Close ends all sessions and waits for their end.
func (h *Handler) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel(errShutdown)
	h.open.Wait()
}

// begin counts a session, or returns why there can be no more.
func (h *Handler) begin(t *tenant.Tenant) (*quota.Reservation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service.Draining() {
		return nil, &service.Error{Code: service.Draining, Err: errStopped}
	}
	held, err := h.service.Account(t).Reserve(quota.Limits{Sessions: 1})
	if err == nil {
		h.open.Add(1)
	}
	return held, err
}

// ServeHTTP serves a session until it ends.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := tenant.FromContext(r.Context())
	if !isUpgrade(r) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		api.WriteProblem(w, http.StatusUpgradeRequired, "want a WebSocket with the subprotocol "+session.Protocol)
		return
	}
	held, err := h.begin(t)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer h.open.Done()
	defer held.Release()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{session.Protocol},
		InsecureSkipVerify: true, // the server has checked Origin, with the operator's list
	})
	if err != nil {
		h.service.Log().Debug("a handshake failed", "tenant", t.Name, "err", err) // the client got the response
		return
	}
	c := &connection{service: h.service, tenant: t, held: held, session: h.service.NewSession(t)}
	c.serve(audit.Of(r.Context()).Attach(h.ctx), conn)
}

// isUpgrade reports whether a request asks for this protocol.
func isUpgrade(r *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(r.Header.Values("Upgrade"), "websocket") &&
		httpguts.HeaderValuesContainsToken(r.Header.Values("Sec-Websocket-Protocol"), session.Protocol)
}
