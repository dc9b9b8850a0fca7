package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
)

// Router finds the nodes of a fleet that perform requests. Package fleet implements it.
type Router interface {
	// Target returns the node that performs a request; empty: this one, which keeps the sandbox until leave is called.
	Target(ctx context.Context, t *tenant.Tenant, o *operation.Operation, params json.RawMessage) (node string, leave func(), err error)

	// Dial opens a session of the tenant on another node.
	Dial(ctx context.Context, node string, t *tenant.Tenant) (*websocket.Conn, error)

	// While returns a context that also ends when a node is lost, and LostError the error of its requests then.
	While(ctx context.Context, node string) (context.Context, context.CancelFunc)
	LostError() error

	// IsMerged reports whether Merge adds the parts of other nodes to the result of an operation.
	IsMerged(o *operation.Operation) bool
	Merge(ctx context.Context, t *tenant.Tenant, path string, own json.RawMessage) (any, error)
}

// route is where the frames of a task go.
type route struct {
	mu      sync.Mutex
	known   bool
	relay   *relay           // nil: this node performs the request
	pending []protocol.Frame // that arrived before the node was known
}

// maxPending bounds the frames that wait for the node of a request to be known, and maxQueued those that wait for another node to
// receive them. Credit bounds the bytes of most of them.
const (
	maxPending = 64
	maxQueued  = 4096
)

// divert takes a frame of a task that another node performs, or may perform.
func (t *task) divert(f protocol.Frame) (taken bool, err error) {
	if t.router == nil {
		return false, nil
	}
	t.route.mu.Lock()
	defer t.route.mu.Unlock()
	switch {
	case t.route.relay != nil:
		return true, t.route.relay.queue(f)
	case t.route.known:
		return false, nil
	case len(t.route.pending) == maxPending:
		return true, fmt.Errorf("%w: too many frames before the result of request %d", protocol.ErrFrame, t.id)
	}
	t.route.pending = append(t.route.pending, f)
	return true, nil
}

// settle sends the frames of a task to a relay from now on or, if it is nil, handles them here.
func (t *task) settle(r *relay) error {
	t.route.mu.Lock()
	defer t.route.mu.Unlock()
	t.route.known, t.route.relay = true, r
	var err error
	for _, f := range t.route.pending {
		if r != nil {
			err = errors.Join(err, r.queue(f))
		} else {
			err = errors.Join(err, t.handle(f))
		}
	}
	t.route.pending = nil
	return err
}

// relay is a session on another node, for the requests of a session that are performed there.
type relay struct {
	client *connection
	open   func() error // once
	socket *protocol.Socket
	ctx    context.Context // until it ends
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	tasks  map[uint32]chan protocol.Frame // of results
	calls  map[uint32]context.CancelFunc  // of functions of the client, by the ids of the other node
	frames [][]byte                       // that wait for the other node to receive them
	wake   chan struct{}
}

// relayed is the frame of a result of another node.
type relayed []byte

// relayTo performs a request on another node.
func (t *task) relayTo(node string, body []byte) (relayed, error) {
	r, err := t.relay(node)
	if err != nil {
		return nil, err
	}
	result := make(chan protocol.Frame, 1)
	r.mu.Lock()
	r.tasks[t.id] = result
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tasks, t.id)
	}()
	if err := r.queue(protocol.Frame{Kind: protocol.KindRequest, ID: t.id, Body: body}); err != nil {
		return nil, err
	}
	if err := t.settle(r); err != nil {
		return nil, err
	}
	select {
	case f := <-result:
		return protocol.Append(nil, f.Kind, t.id, f.Body), nil
	case <-r.ctx.Done():
		if t.connection.ctx.Err() != nil {
			return nil, context.Cause(t.connection.ctx)
		}
		return nil, t.router.LostError()
	}
}

// relay returns the session on another node, which it opens for the first request, and again after its end.
func (c *connection) relay(node string) (*relay, error) {
	c.mu.Lock()
	r := c.relays[node]
	if r == nil || r.ctx.Err() != nil {
		r = &relay{client: c, tasks: map[uint32]chan protocol.Frame{}, calls: map[uint32]context.CancelFunc{}, wake: make(chan struct{}, 1)}
		alive, release := c.router.While(c.ctx, node)
		r.ctx, r.cancel = context.WithCancelCause(alive)
		context.AfterFunc(r.ctx, release)
		r.open = sync.OnceValue(func() error { return r.dial(node) })
		c.relays[node] = r
	}
	c.mu.Unlock()
	return r, r.open()
}

func (r *relay) dial(node string) error {
	c := r.client
	socket, err := c.router.Dial(r.ctx, node, c.tenant)
	if err != nil {
		r.cancel(err)
		return err
	}
	socket.SetReadLimit(protocol.MaxFrame + headRoom)
	r.socket = protocol.NewSocket(socket, protocol.Server)
	r.socket.Ended, r.socket.WriteTimeout, r.socket.Failed = r.ctx, writeTimeout, r.cancel
	c.work.Go(r.send)
	c.work.Go(func() {
		err := r.socket.Receive(r.receive)
		if end, ok := errors.AsType[websocket.CloseError](err); ok && end.Code == websocket.StatusProtocolError { // for a frame of the client
			c.cancel(fmt.Errorf("%w%s", protocol.ErrFrame, strings.TrimPrefix(end.Reason, protocol.ErrFrame.Error())))
		}
		r.cancel(err)
	})
	context.AfterFunc(r.ctx, func() { _ = socket.CloseNow() })
	return nil
}

// headRoom is how much longer messages may be than frames: see [protocol.Socket].
const headRoom = 1 << 10

// queue adds a frame to those that wait to be sent.
func (r *relay) queue(f protocol.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.frames) == maxQueued {
		return fmt.Errorf("%w: too many frames for a node that does not receive them", protocol.ErrFrame)
	}
	r.frames = append(r.frames, protocol.Append(nil, f.Kind, f.ID, f.Body))
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return nil
}

// send sends the frames that wait, until the relay ends.
func (r *relay) send() {
	for {
		r.mu.Lock()
		frames := r.frames
		r.frames = nil
		r.mu.Unlock()
		for _, f := range frames {
			if r.socket.Send(r.ctx, f) != nil {
				return
			}
		}
		if len(frames) > 0 {
			continue
		}
		select {
		case <-r.wake:
		case <-r.ctx.Done():
			return
		}
	}
}

// receive passes a frame of the other node to the client.
func (r *relay) receive(f protocol.Frame) error {
	switch f.Kind {
	case protocol.KindResult, protocol.KindError:
		r.mu.Lock()
		defer r.mu.Unlock()
		if result := r.tasks[f.ID]; result != nil {
			delete(r.tasks, f.ID)
			result <- f
		}
		return nil
	case protocol.KindCall:
		r.call(f)
		return nil
	case protocol.KindAbandon:
		r.mu.Lock()
		defer r.mu.Unlock()
		if cancel := r.calls[f.ID]; cancel != nil {
			cancel()
		}
		return nil
	}
	return r.client.send(r.ctx, protocol.Append(nil, f.Kind, f.ID, f.Body))
}

// call calls a function of the client for the other node.
func (r *relay) call(f protocol.Frame) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.calls[f.ID] = cancel
	r.mu.Unlock()
	r.client.work.Go(func() {
		defer cancel()
		a, err := r.client.calls.exchange(ctx, f.Body)
		r.mu.Lock()
		delete(r.calls, f.ID)
		r.mu.Unlock()
		if err != nil { // the call, or the relay, has ended
			return
		}
		defer a.frame.Release()
		reply := protocol.Frame{Kind: a.frame.Kind, ID: f.ID, Body: a.frame.Body}
		if a.frame.Refused != nil {
			text, _ := json.Marshal(protocol.Failure{Message: a.frame.Refused.Error()}) // which never fails
			reply.Kind, reply.Body = protocol.KindFailure, text
		}
		if err := r.queue(reply); err != nil {
			r.cancel(err)
		}
	})
}
