package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/semaphore"

	"gaol/internal/session"
	"gaol/runtime"
)

// Options select a server. The zero value selects the socket that [Socket] returns.
type Options struct {
	// Socket is the path of a server's unix socket. The server knows the caller by its user.
	Socket string

	// Address is the URL of a server on TCP, such as https://gaol.example.com:8640. It excludes
	// Socket.
	Address string

	// Token is the bearer token for Address. Empty: $GAOL_TOKEN.
	Token string

	// TLS configures https. It may be nil.
	TLS *tls.Config

	// Conn is an open connection to use instead, such as the peer of a connection that gaol
	// serve --inherit serves. It excludes Socket and Address. The client closes it.
	Conn net.Conn
}

// ErrDisconnected is wrapped by errors of a client whose connection has ended.
var ErrDisconnected = errors.New("the connection to the server has ended")

const (
	// writeTimeout is how long the server may not read.
	writeTimeout = time.Minute

	// maxBodies bounds the requests without a result, in bytes: the server closes the
	// connection of a client that sends more.
	maxBodies = 64 << 20
)

// Client is a connection to a server. Its methods may be called concurrently.
type Client struct {
	socket *session.Socket
	ctx    context.Context // of everything on the connection
	cancel context.CancelCauseFunc
	slots  *semaphore.Weighted // of requests
	bytes  *semaphore.Weighted // of their bodies
	work   sync.WaitGroup

	mu        sync.Mutex
	requests  map[uint32]*request
	last      uint32 // id
	functions map[uint32]function
	nextFunc  uint32
	running   map[uint32]context.CancelFunc // calls
}

// Dial connects to a server. ctx bounds the handshake only.
func Dial(ctx context.Context, o Options) (*Client, error) {
	h, err := NewHTTP(o)
	if err != nil {
		return nil, err
	}
	socket, response, err := websocket.Dial(ctx, h.URL+"/v1/session", &websocket.DialOptions{
		HTTPClient: h.Client, Subprotocols: []string{session.Protocol},
	})
	if err != nil {
		if refused := refusal(response); refused != nil {
			return nil, fmt.Errorf("gaol: dial: %w", refused)
		}
		return nil, h.Explain(err)
	}
	if socket.Subprotocol() != session.Protocol {
		_ = socket.CloseNow()
		return nil, fmt.Errorf("gaol: dial: the server does not have the protocol %s", session.Protocol)
	}
	socket.SetReadLimit(session.MaxFrame + 1024)
	c := &Client{
		socket: session.NewSocket(socket, session.Server),
		slots:  semaphore.NewWeighted(session.MaxRequests), bytes: semaphore.NewWeighted(maxBodies),
		requests: map[uint32]*request{}, functions: map[uint32]function{}, running: map[uint32]context.CancelFunc{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.socket.Ended, c.socket.WriteTimeout, c.socket.Failed = c.ctx, writeTimeout, c.drop
	c.work.Go(c.read)
	return c, nil
}

// maxProblem bounds the body of a refusal.
const maxProblem = 64 << 10

// refusal returns why the server has refused the connection.
func refusal(r *http.Response) error {
	if r == nil || r.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, maxProblem)) // of an error there may be a part
	if err := parseError(text); !errors.Is(err, session.ErrFrame) {
		return err
	}
	return fmt.Errorf("the server replied %s", r.Status)
}

// Close closes the connection. The server closes everything that the client has created, except detached
// sandboxes, and continues to run.
func (c *Client) Close() error {
	c.cancel(errClosed)
	_ = c.socket.Close(websocket.StatusNormalClosure, "") // fails if the connection has ended before
	c.work.Wait()
	return nil
}

var errClosed = fmt.Errorf("%w: Close was called", ErrDisconnected)

// Done returns a channel that is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil until Done is closed, and then why the connection has ended. It wraps
// [ErrDisconnected].
func (c *Client) Err() error { return context.Cause(c.ctx) }

// read receives frames until the connection ends.
func (c *Client) read() {
	err := c.socket.Receive(c.handle)
	if !errors.Is(err, ErrDisconnected) {
		err = fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	c.cancel(err)
	if errors.Is(err, session.ErrFrame) {
		_ = c.socket.Close(websocket.StatusProtocolError, "")
		return
	}
	_ = c.socket.CloseNow()
}

// handle handles a frame without waiting.
func (c *Client) handle(f session.Frame) error {
	switch f.Kind {
	case session.KindCall:
		return c.call(f)
	case session.KindAbandon:
		c.mu.Lock()
		defer c.mu.Unlock()
		if cancel := c.running[f.ID]; cancel != nil {
			cancel()
		}
		return nil
	}
	c.mu.Lock()
	r := c.requests[f.ID]
	c.mu.Unlock()
	if r == nil {
		return nil // credit that was on its way when the request ended
	}
	return r.receive(f)
}

// send writes a frame when it is its turn.
func (c *Client) send(ctx context.Context, frame []byte) error { return c.socket.Send(ctx, frame) }

// drop ends the connection without the server's help.
func (c *Client) drop(err error) {
	c.cancel(fmt.Errorf("%w: %w", ErrDisconnected, err))
	_ = c.socket.CloseNow() // which ends read
}

// Errors of servers that form a fleet. An [*Error] matches them.
var (
	// ErrSandboxLost means that the sandbox's node has left the fleet, has died or was restarted. The sandbox
	// cannot be restored: create another one. The error matches [runtime.ErrClosed], too.
	ErrSandboxLost = errors.New("the sandbox is lost")

	// ErrUnreachable means that a node cannot be reached now. The operation has not begun: it can be repeated
	// after RetryAfter of the [*Error].
	ErrUnreachable = errors.New("the node cannot be reached")

	// ErrNodeLost means that a node was lost during the operation, which may have had effects. Repeat it only if
	// it is idempotent.
	ErrNodeLost = errors.New("the node was lost")

	// ErrEngineUnavailable means that the fleet's engine cannot be reached now. The operation can be repeated
	// after RetryAfter of the [*Error].
	ErrEngineUnavailable = errors.New("the fleet's engine cannot be reached")
)

// MissingError means that nodes of a fleet did not reply in time. [Client.Sandboxes] and [Client.Snapshots] return it
// with a list that lacks the part of these nodes.
type MissingError struct {
	Nodes []string // their ids
}

// Error names the nodes.
func (e *MissingError) Error() string {
	return "the list is incomplete: no reply from nodes " + strings.Join(e.Nodes, ", ")
}

// Error is a refusal of the server. It matches [fs.ErrNotExist], [fs.ErrPermission],
// [runtime.ErrClosed], [runtime.ErrPaused] and the errors of this package, if its code means that.
type Error struct {
	Code       string // a stable name, such as "quota"; docs/session.md lists them
	Status     int    // the HTTP status of the same error
	Detail     string
	Fields     []string      // which fields of the request are invalid, and why
	RetryAfter time.Duration // when the request may succeed; zero if that is unknown
}

// sdkPrefix begins the errors of package runtime, which name what failed.
const sdkPrefix = "gaol: "

// Error returns the detail.
func (e *Error) Error() string {
	if strings.HasPrefix(e.Detail, sdkPrefix) {
		return e.Detail
	}
	return "server: " + cmp.Or(e.Detail, strings.ToLower(http.StatusText(e.Status)))
}

// meanings lists the errors that codes match.
var meanings = map[string][]error{
	"not_found":          {fs.ErrNotExist},
	"no_program":         {fs.ErrNotExist},
	"forbidden":          {fs.ErrPermission},
	"not_executable":     {fs.ErrPermission},
	"closed":             {runtime.ErrClosed},
	"paused":             {runtime.ErrPaused},
	"draining":           {runtime.ErrClosed},
	"interrupted":        {runtime.ErrClosed},
	"sandbox_lost":       {ErrSandboxLost, runtime.ErrClosed},
	"unreachable":        {ErrUnreachable},
	"node_lost":          {ErrNodeLost},
	"engine_unavailable": {ErrEngineUnavailable},
	"canceled":           {context.Canceled},
}

// Is matches the errors that package runtime returns in the same situation, and those of a fleet.
func (e *Error) Is(target error) bool { return slices.Contains(meanings[e.Code], target) }

// parseError returns the *Error that a text describes, or an error that wraps session.ErrFrame.
func parseError(text []byte) error {
	var p session.Problem
	if json.Unmarshal(text, &p) != nil || p.Code == "" {
		return fmt.Errorf("%w: an error without a code", session.ErrFrame)
	}
	e := &Error{Code: p.Code, Status: p.Status, Detail: p.Detail, RetryAfter: time.Duration(p.RetryAfterMs) * time.Millisecond}
	for _, f := range p.Errors {
		e.Fields = append(e.Fields, f.Location+": "+f.Message)
	}
	return e
}

// unsupported is the error for an option that servers do not have.
func unsupported(option string) error {
	return &runtime.OptionError{Option: option, Err: fmt.Errorf("servers do not have it: %w", errors.ErrUnsupported)}
}
