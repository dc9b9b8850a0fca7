package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"

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
	log     *slog.Logger

	ctx    context.Context // of all sessions
	cancel context.CancelCauseFunc
	open   sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// New returns a handler. The caller closes it. The log may be nil.
func New(s *service.Service, log *slog.Logger) *Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{service: s, log: log}
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
	h.closed = true
	h.mu.Unlock()
	h.cancel(errShutdown)
	h.open.Wait()
}

// begin counts a session, or returns why there can be no more.
func (h *Handler) begin(t *tenant.Tenant) (*quota.Reservation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.service.Draining() {
		return nil, &service.Error{Code: service.Draining, Err: errStopped}
	}
	held, err := h.service.Account(t).Session()
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
		h.log.Debug("a handshake failed", "tenant", t.Name, "err", err) // the client got the response
		return
	}
	c := &connection{service: h.service, tenant: t, log: h.log, held: held, tools: h.service.NewToolbox(t)}
	c.serve(audit.Of(r.Context()).Attach(h.ctx), conn)
}

// isUpgrade reports whether a request asks for this protocol.
func isUpgrade(r *http.Request) bool {
	return websocketHeader(r.Header, "Upgrade", "websocket") && websocketHeader(r.Header, "Sec-Websocket-Protocol", session.Protocol)
}

// websocketHeader reports whether a header lists a token.
func websocketHeader(h http.Header, name, token string) bool {
	list := strings.Split(strings.Join(h.Values(name), ","), ",")
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), token) })
}
