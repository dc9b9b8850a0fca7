package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/session"
	"gaol/runtime/internal/stdio"
	"gaol/runtime/internal/work"
)

// request is a request without a result so far.
type request struct {
	c     *Client
	id    uint32
	stdin *session.Credit

	buffers map[session.Kind]*session.Buffer
	frames  *stdio.Feed[session.Frame] // the others

	mu   sync.Mutex
	debt [session.Streams]session.Debt
}

// message is a request to send: an operation with its input, and what its streams need.
type message struct {
	session.Request
	doing string // for errors
	in    any    // the input

	stdin   io.Reader
	signals <-chan syscall.Signal
	handle  func(session.Frame) error // of streams from the server; an error cancels the request; nil: dropped

	buffers map[session.Kind]*session.Buffer // of streams that the caller reads; frames of others are passed to handle
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
	r := c.register(m.buffers)
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

func (c *Client) register(buffers map[session.Kind]*session.Buffer) *request {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.last++; c.last == 0 || c.requests[c.last] != nil; c.last++ {
	}
	r := &request{c: c, id: c.last, stdin: session.NewCredit(), buffers: buffers, frames: stdio.NewFeed[session.Frame]()}
	c.requests[r.id] = r
	for kind, b := range buffers {
		s, _ := kind.Stream()
		b.Return = func(n uint32) { r.credit(s, n) }
	}
	return r
}

// receive stores a frame for wait, or in the buffer of its stream.
func (r *request) receive(f session.Frame) error {
	if f.Kind == session.KindCredit {
		_, n := f.Credit()
		return r.stdin.Add(n)
	}
	if b := r.buffers[f.Kind]; b != nil {
		return b.Add(f.Body)
	}
	if s, ok := f.Kind.Stream(); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := r.debt[s].Receive(len(f.Body)); err != nil {
			return err
		}
	}
	r.frames.Put(f, 0)
	return nil
}

// processed returns credit for a frame of a stream.
func (r *request) processed(s session.Stream, n int) {
	r.mu.Lock()
	due := r.debt[s].Processed(n)
	r.mu.Unlock()
	if due > 0 {
		r.credit(s, due)
	}
}

func (r *request) credit(s session.Stream, n uint32) {
	_ = r.c.send(r.c.ctx, session.AppendCredit(nil, r.id, s, n)) // fails if the connection has ended
}

// cancel asks the server to end the request, which then returns a result or an error.
func (r *request) cancel() {
	_ = r.c.send(r.c.ctx, session.Append(nil, session.KindCancel, r.id)) // fails if the connection has ended
}

// wait passes the frames of streams to handle until that returns true, or until the result, which it returns. When
// ctx ends, it cancels the request, and waits for the result of that.
func (r *request) wait(ctx context.Context, handle func(session.Frame) (done bool)) (result json.RawMessage, err error) {
	defer context.AfterFunc(ctx, r.cancel)()
	defer context.AfterFunc(r.c.ctx, func() { r.frames.Close() })()
	ended := r.frames.All(func(f session.Frame) (more bool) {
		switch f.Kind {
		case session.KindResult:
			result = f.Body
			return false
		case session.KindError:
			err = parseError(f.Body)
			return false
		}
		done := handle(f)
		if s, ok := f.Kind.Stream(); ok {
			r.processed(s, len(f.Body))
		}
		return !done
	})
	if ended {
		err = r.c.Err()
	}
	return result, err
}

// get performs an operation without streams.
func get[R any](ctx context.Context, c *Client, method, doing string, in any) (R, error) {
	return call[R](ctx, c, message{Request: session.Request{Method: method}, doing: doing, in: in})
}

// do is get for an operation without a result.
func (c *Client) do(ctx context.Context, method, doing string, in any) error {
	_, err := get[struct{}](ctx, c, method, doing, in)
	return err
}

// call performs an operation. If ctx or one of its streams ends a run, there are a result and an error.
func call[R any](ctx context.Context, c *Client, m message) (result R, err error) {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m.Stdin = m.stdin != nil
	r, end, err := c.start(running, m)
	if err != nil {
		return result, wrap(m.doing, err)
	}
	defer end()
	if m.signals != nil {
		go stdio.PassSignals(m.signals, running.Done(), func(s syscall.Signal) {
			_ = c.send(running, session.Append(nil, session.KindSignal, r.id, []byte(unix.SignalName(s)))) // fails if the connection has ended
		})
	}
	if m.stdin != nil {
		go func() { // not waited for: a Read may block
			if err := r.feed(running, m.stdin); err != nil {
				stop(fmt.Errorf("stdin: %w", err))
			}
		}()
	}
	text, err := r.wait(running, func(f session.Frame) (done bool) {
		if m.handle != nil {
			if err := m.handle(f); err != nil {
				stop(err)
				m.handle = nil
			}
		}
		return false
	})
	if err == nil {
		err = decode(text, &result)
	}
	switch canceled := err == nil || errors.Is(err, context.Canceled); {
	case canceled && ctx.Err() != nil:
		return result, wrap(m.doing, work.ContextError(ctx))
	case canceled && running.Err() != nil:
		err = context.Cause(running)
	}
	return result, wrap(m.doing, err)
}

// decode decodes a result. A result of pointer type must not be null.
func decode(text json.RawMessage, result any) error {
	err := json.Unmarshal(text, result)
	if v := reflect.ValueOf(result).Elem(); err == nil && v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.New("null")
	}
	if err != nil {
		return fmt.Errorf("an invalid result of the server: %w", err)
	}
	return nil
}

// open starts an operation that lasts until its end, and waits for its start, whose data it returns. The caller calls
// end. If ctx ends first, it cancels the request and waits for its end.
func open[R any](ctx context.Context, c *Client, m message) (r *request, info R, end func(), err error) {
	m.Events = true
	r, end, err = c.start(ctx, m)
	if err != nil {
		return nil, info, nil, wrap(m.doing, err)
	}
	var first session.Event
	_, err = r.wait(ctx, func(f session.Frame) (done bool) {
		return ctx.Err() == nil && json.Unmarshal(f.Body, &first) == nil
	})
	switch {
	case first.Event == "started":
		err = json.Unmarshal(first.Data, &info)
	case ctx.Err() != nil && c.ctx.Err() == nil:
		err = context.Cause(ctx)
	case err == nil:
		err = fmt.Errorf("%w: event %q before the start", session.ErrFrame, first.Event)
	}
	if err != nil {
		end()
	}
	return r, info, end, wrap(m.doing, err)
}

// feed sends standard input until EOF, or until ctx ends. It returns the error of a Read, after which
// it sends no EOF: the server must not use the input as if it were complete.
func (r *request) feed(ctx context.Context, stdin io.Reader) error {
	buffer := make([]byte, session.MaxChunk)
	for {
		n, err := stdin.Read(buffer)
		if n > 0 && (r.stdin.Take(ctx, n) != nil || r.c.send(ctx, session.Append(nil, session.KindStdin, r.id, buffer[:n])) != nil) {
			return nil // the request has ended
		}
		if err == io.EOF {
			_ = r.c.send(ctx, session.Append(nil, session.KindStdin, r.id)) // fails if the request has ended
			return nil
		}
		if err != nil {
			return err
		}
	}
}
