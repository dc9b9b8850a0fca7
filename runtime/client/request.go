package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"gaol/internal/session"
)

// request is a request without a result so far.
type request struct {
	c     *Client
	id    uint32
	stdin *session.Credit

	mu    sync.Mutex
	queue []session.Frame
	used  [session.Streams]int64 // bytes for which no credit was returned
	debt  [session.Streams]session.Debt
	ready chan struct{} // holds a value if the queue may have frames
}

// message is a request to send: an operation with its input, and the streams that it needs.
type message struct {
	session.Request
	in any // the input
}

// start sends a request.
func (c *Client) start(ctx context.Context, m message) (*request, func(), error) {
	text, err := json.Marshal(m.in)
	if err != nil {
		return nil, nil, err
	}
	m.Params = text
	body, err := json.Marshal(m.Request)
	if err != nil {
		return nil, nil, err
	}
	size := min(int64(len(body)), maxBodies)
	if len(body) > session.MaxFrame {
		return nil, nil, &Error{Code: "too_large", Status: 413, Detail: fmt.Sprintf("a request of %d bytes, the limit is %d", len(body), session.MaxFrame)}
	}
	if err := c.acquire(ctx, size); err != nil {
		return nil, nil, err
	}
	r := c.register()
	end := func() {
		c.mu.Lock()
		delete(c.requests, r.id)
		c.mu.Unlock()
		c.slots.Release(1)
		c.bytes.Release(size)
	}
	if err := c.send(ctx, session.Append(make([]byte, 0, 8+len(body)), session.KindRequest, r.id, body)); err != nil {
		end()
		return nil, nil, err
	}
	return r, end, nil
}

// acquire waits until the server accepts another request.
func (c *Client) acquire(ctx context.Context, size int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(c.Err()) })()
	if err := c.slots.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	if err := c.bytes.Acquire(ctx, size); err != nil {
		c.slots.Release(1)
		return context.Cause(ctx)
	}
	return nil
}

func (c *Client) register() *request {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.last++; c.last == 0 || c.requests[c.last] != nil; c.last++ {
	}
	r := &request{c: c, id: c.last, stdin: session.NewCredit(), ready: make(chan struct{}, 1)}
	c.requests[r.id] = r
	return r
}

// receive stores a frame for next.
func (r *request) receive(f session.Frame) error {
	if f.Kind == session.KindCredit {
		_, n := f.Credit()
		return r.stdin.Add(n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := f.Kind.Stream(); ok {
		if r.used[s] >= session.Window {
			return fmt.Errorf("%w: bytes without credit", session.ErrFrame)
		}
		r.used[s] += int64(len(f.Body))
	}
	r.queue = append(r.queue, f)
	r.wake()
	return nil
}

// wake makes next look at the queue.
func (r *request) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// next returns the next frame. It waits for the end of ctx, too.
func (r *request) next(ctx context.Context) (session.Frame, error) {
	for {
		r.mu.Lock()
		if len(r.queue) > 0 {
			f := r.queue[0]
			r.queue = r.queue[1:]
			r.mu.Unlock()
			return f, nil
		}
		r.mu.Unlock()
		select {
		case <-r.ready:
			continue
		default:
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			return session.Frame{}, context.Cause(ctx)
		case <-r.c.ctx.Done():
			return session.Frame{}, r.c.Err()
		}
	}
}

// processed returns credit for a frame of a stream, unless a buffer returns it from now on.
func (r *request) processed(s session.Stream, n int, buffered bool) {
	r.mu.Lock()
	due := uint32(0)
	if buffered {
		r.used[s] -= int64(n)
	} else {
		due = r.debt[s].Processed(n)
		r.used[s] -= int64(due)
	}
	r.mu.Unlock()
	if due > 0 {
		_ = r.c.send(r.c.ctx, session.AppendCredit(nil, r.id, s, due)) // fails if the connection has ended
	}
}

// cancel asks the server to end the request, which then returns a result or an error.
func (r *request) cancel() {
	_ = r.c.send(r.c.ctx, session.Append(nil, session.KindCancel, r.id)) // fails if the connection has ended
}

// wait passes the frames of all streams to handle, which reports whether a buffer has them, and returns the result. When
// ctx ends, it cancels the request, and waits for the result of that.
func (r *request) wait(ctx context.Context, handle func(session.Frame) (buffered bool)) (json.RawMessage, error) {
	waiting := ctx
	for {
		f, err := r.next(waiting)
		switch {
		case err != nil && r.c.ctx.Err() != nil:
			return nil, r.c.Err()
		case err != nil:
			r.cancel()
			waiting = r.c.ctx
			continue
		case f.Kind == session.KindResult:
			return f.Body, nil
		case f.Kind == session.KindError:
			return nil, asError(parseError(f.Body))
		}
		if s, ok := f.Kind.Stream(); ok {
			r.processed(s, len(f.Body), handle != nil && handle(f))
		}
	}
}

// do sends a request without streams, and decodes its result.
func (c *Client) do(ctx context.Context, method string, in, result any) error {
	return c.ask(ctx, message{session.Request{Method: method}, in}, result)
}

// ask is do for any request.
func (c *Client) ask(ctx context.Context, m message, result any) error {
	r, end, err := c.start(ctx, m)
	if err != nil {
		return err
	}
	defer end()
	text, err := r.wait(ctx, nil)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// get performs an operation without streams. Doing is for errors.
func get[R any](ctx context.Context, c *Client, doing, method string, in any) (R, error) {
	return call[R](ctx, c, doing, message{session.Request{Method: method}, in})
}

// call is get for any request.
func call[R any](ctx context.Context, c *Client, doing string, m message) (result R, err error) {
	err = c.ask(ctx, m, &result)
	return result, wrap(doing, err)
}

// feed sends standard input until EOF, or until ctx ends. It returns the error of a Read, after which
// it sends no EOF: the server must not use the input as if it were complete.
func (r *request) feed(ctx context.Context, stdin io.Reader) error {
	buffer := make([]byte, session.MaxChunk)
	for {
		n, err := stdin.Read(buffer)
		if n > 0 && r.write(ctx, buffer[:n]) != nil {
			return nil // the request has ended
		}
		if err == io.EOF {
			_ = r.endInput(ctx) // fails if the request has ended
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write sends a piece of standard input.
func (r *request) write(ctx context.Context, piece []byte) error {
	if err := r.stdin.Take(ctx, len(piece)); err != nil {
		return err
	}
	return r.c.send(ctx, session.Append(nil, session.KindStdin, r.id, piece))
}

// endInput sends the end of standard input.
func (r *request) endInput(ctx context.Context) error {
	return r.c.send(ctx, session.Append(nil, session.KindStdin, r.id))
}
