package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/semaphore"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
)

// Handler serves sessions. Its requests must have a tenant.
type Handler struct {
	service *service.Service
	router  Router // nil: there are no other nodes

	ctx    context.Context // of all sessions
	cancel context.CancelCauseFunc

	mu   sync.Mutex // held to begin a session, and to refuse others from then on
	open sync.WaitGroup
}

// New returns a handler. Without a router it performs all requests itself. The caller closes it after the service.
func New(s *service.Service, router Router) *Handler {
	h := &Handler{service: s, router: router}
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
	h.cancel(errShutdown)
	h.mu.Unlock()
	h.open.Wait()
}

// begin counts a session, or returns why there can be no more. While the server is being stopped, other nodes still look for sandboxes
// here that have moved.
func (h *Handler) begin(t *tenant.Tenant) (*quota.Reservation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service.Draining() && !t.Forwarded || h.ctx.Err() != nil {
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
		api.WriteProblem(w, http.StatusUpgradeRequired, "want a WebSocket with the subprotocol "+protocol.Protocol)
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
		Subprotocols:       []string{protocol.Protocol},
		InsecureSkipVerify: true, // the server has checked Origin, with the operator's list
	})
	if err != nil {
		h.service.Log().DebugContext(r.Context(), "a handshake failed", "tenant", t.Name, "err", err) // the client got the response
		return
	}
	c := &connection{service: h.service, tenant: t, held: held, session: h.service.NewSession(t), router: h.router, relays: map[string]*relay{}}
	c.serve(service.WithRequest(audit.Of(r.Context()).Attach(h.ctx), service.RequestOf(r.Context())), conn)
}

// isUpgrade reports whether a request asks for this protocol.
func isUpgrade(r *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(r.Header.Values("Upgrade"), "websocket") &&
		httpguts.HeaderValuesContainsToken(r.Header.Values("Sec-Websocket-Protocol"), protocol.Protocol)
}

const (
	// pingEvery is how often the server checks that an idle client is alive, and pongTimeout is
	// how long it waits for the reply.
	pingEvery   = 30 * time.Second
	pongTimeout = 30 * time.Second

	// writeTimeout is how long the client may not read while the server has something for it.
	// Credit makes that rare: a client can always read.
	writeTimeout = 30 * time.Second

	// messageTimeout is how long a client may take to send a message: 32 MiB at 256 KiB a second.
	messageTimeout = 130 * time.Second

	// maxBodies bounds the requests that have no result yet, in bytes.
	maxBodies = 64 << 20
)

// connection is a session.
type connection struct {
	service *service.Service
	tenant  *tenant.Tenant
	held    *quota.Reservation
	socket  *protocol.Socket
	calls   *calls
	session *service.Session // whose sandboxes end with the connection
	router  Router           // nil: this node performs all requests

	ctx    context.Context // of everything in the session
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	tasks  map[uint32]*task
	bodies int64             // of tasks
	relays map[string]*relay // by node
}

// serve serves a socket until it ends, or ctx.
func (c *connection) serve(ctx context.Context, socket *websocket.Conn) {
	socket.SetReadLimit(protocol.MaxFrame)
	c.socket, c.tasks = protocol.NewSocket(socket, protocol.Client), map[uint32]*task{}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.socket.Ended, c.socket.WriteTimeout = c.ctx, writeTimeout
	c.socket.Failed = func(err error) { c.cancel(fmt.Errorf("%w: write: %w", errEnded, err)) }
	c.calls = &calls{
		connection: c, waiting: map[uint32]chan answer{},
		slots: semaphore.NewWeighted(protocol.MaxCalls), bytes: semaphore.NewWeighted(maxArguments),
	}
	if c.service.Settings().Trusted { // such a client may be stopped by a debugger
		c.socket.WriteTimeout = math.MaxInt64
	} else {
		c.socket.MessageTimeout = messageTimeout
		c.socket.Reserve = c.reserve
		c.work.Go(c.ping)
	}
	closed := make(chan struct{})
	context.AfterFunc(c.ctx, func() {
		defer close(closed)
		c.close(context.Cause(c.ctx))
	})
	err := c.socket.Receive(c.handle)
	c.cancel(fmt.Errorf("%w: %w", errEnded, err))
	<-closed
	c.work.Wait()
	c.session.End()
}

// reserve reserves memory until release is called. Large messages take turns.
func (c *connection) reserve(bytes int) (release func(), err error) {
	if err := c.hold(bytes); err != nil {
		return nil, err
	}
	done := func() {}
	if bytes > quota.LargeText {
		if done, err = c.service.Account(c.tenant).WaitText(c.ctx, bytes); err != nil {
			_ = c.hold(-bytes)
			return nil, err
		}
	}
	return sync.OnceFunc(func() { done(); _ = c.hold(-bytes) }), nil
}

// hold reserves memory, and releases it if bytes is negative; only a reservation can fail.
func (c *connection) hold(bytes int) error { return c.held.Hold(int64(bytes)) }

// errEnded is wrapped by the cause of what ends because its session has.
var errEnded = fmt.Errorf("the session has ended: %w", context.Canceled)

// close closes the socket with the code of an error.
func (c *connection) close(err error) {
	code, reason := websocket.StatusNormalClosure, ""
	switch {
	case errors.Is(err, protocol.ErrFrame):
		code, reason = websocket.StatusProtocolError, frameReason(err)
	case errors.Is(err, errManyRequests):
		code, reason = websocket.StatusPolicyViolation, errManyRequests.Error()
	case errors.Is(err, websocket.ErrMessageTooBig):
		code, reason = websocket.StatusMessageTooBig, fmt.Sprintf("more than %d bytes", protocol.MaxFrame)
	case errors.Is(err, protocol.ErrSlow):
		code, reason = websocket.StatusPolicyViolation, protocol.ErrSlow.Error()
	case errors.Is(err, errShutdown):
		code, reason = websocket.StatusGoingAway, "the server is being stopped"
	}
	_ = c.socket.Close(code, reason) // the client may have gone
}

// maxReason is how long the reason of a close frame may be, in bytes.
const maxReason = 123

// frameReason returns the reason for closing after a bad frame.
func frameReason(err error) string {
	text := protocol.ErrFrame.Error()
	if _, why, ok := strings.Cut(err.Error(), text); ok {
		text += why
	}
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// handle handles a frame without waiting. Frames for requests and calls that have ended are dropped:
// they may have been on their way.
func (c *connection) handle(f protocol.Frame) error {
	switch f.Kind {
	case protocol.KindRequest:
		return c.begin(f)
	case protocol.KindAnswer, protocol.KindFailure:
		return c.calls.handle(f)
	}
	defer f.Release()
	t := c.task(f.ID)
	switch {
	case f.Refused != nil: // no bodies of these kinds are reserved that long
		return f.Refused
	case t == nil:
		return nil
	}
	if taken, err := t.divert(f); taken || err != nil {
		return err
	}
	return t.handle(f)
}

// handle handles a frame of a task without waiting.
func (t *task) handle(f protocol.Frame) error {
	switch {
	case f.Kind == protocol.KindCancel:
		t.cancel(errCanceled)
	case f.Kind == protocol.KindSignal:
		t.signal(string(f.Body))
	case f.Kind == protocol.KindStdin && len(f.Body) == 0:
		t.stdin.Close(nil)
	case f.Kind == protocol.KindStdin:
		t.received.Add(int64(len(f.Body)))
		if err := t.stdin.Add(f.Body); errors.Is(err, protocol.ErrFrame) {
			return err
		} else if err != nil {
			t.cancel(err)
		}
	case f.Kind == protocol.KindCredit:
		s, n := f.Credit()
		return t.credit[s].Add(n)
	}
	return nil
}

func (c *connection) task(id uint32) *task {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks[id]
}

var errManyRequests = errors.New("too many concurrent requests")

// begin starts the task of a request.
func (c *connection) begin(f protocol.Frame) error {
	t := newTask(c, f.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tasks[f.ID] != nil {
		return fmt.Errorf("%w: request %d is in use", protocol.ErrFrame, f.ID)
	}
	if len(c.tasks) >= protocol.MaxRequests || c.bodies+int64(len(f.Body)) > maxBodies {
		return fmt.Errorf("%w: at most %d, with %d bytes", errManyRequests, protocol.MaxRequests, maxBodies)
	}
	c.tasks[f.ID] = t
	c.bodies += int64(len(f.Body))
	c.work.Go(func() {
		defer f.Release()
		t.run(f)
	})
	return nil
}

// end forgets a task, so that its id can be used again.
func (c *connection) end(t *task, body int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tasks, t.id)
	c.bodies -= int64(body)
}

// send writes a frame when it is its turn. An error means that the session has ended, or ctx.
func (c *connection) send(ctx context.Context, frame []byte) error { return c.socket.Send(ctx, frame) }

// ping ends the session when the client does not reply.
func (c *connection) ping() {
	ticks := time.Tick(pingEvery)
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticks:
		}
		ctx, cancel := context.WithTimeout(c.ctx, pongTimeout)
		err := c.socket.Ping(ctx)
		cancel()
		if err != nil {
			c.cancel(fmt.Errorf("%w: ping: %w", errEnded, err))
			return
		}
	}
}
