package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"gaol/internal/session"
	"gaol/runtime/requestjson"
)

// Dial connects to a TCP server of the guest that listens on a port of localhost or of all addresses,
// as [runtime.NodeRuntime.Dial] does. If nothing listens, the error is an [*Error] with the code
// "not_listening": see [Sandbox.WaitForListener].
//
// The connection also implements CloseWrite, as [net.TCPConn] does. The caller closes it; it ends
// with the sandbox and with the client.
func (sb *Sandbox) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	r, _, end, err := open[struct{}](ctx, sb.c, message{
		Request: session.Request{Method: "dial", Stdin: true}, doing: "dial", in: requestjson.InPort{InSandbox: sb.in(), Port: port},
	})
	if err != nil {
		return nil, err
	}
	c := &conn{r: r, sent: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	var received, written net.Conn
	c.Conn, received = net.Pipe()
	c.out, written = net.Pipe()
	sb.c.work.Go(func() {
		defer end()
		c.receive(received)
		_ = written.Close() // which ends feed
	})
	go func() {
		defer close(c.sent)
		_ = r.feed(c.ctx, written) // fails if the request has ended
	}()
	return c, nil
}

// conn is a connection to a guest's server. The caller reads from one pipe, and writes to another.
type conn struct {
	net.Conn
	out net.Conn

	r    *request
	sent chan struct{}   // closed when all that the caller has written has been sent
	ctx  context.Context // ends with the request; its cause is io.EOF, or the error that terminated the connection
	end  context.CancelCauseFunc
}

// receive writes data from the guest to the pipe until the request has ended.
func (c *conn) receive(to net.Conn) {
	ctx := c.r.c.ctx
	defer context.AfterFunc(ctx, func() {
		c.end(wrap("read", c.r.c.Err()))
		_ = to.Close() // the caller may not read
	})()
	_, err := c.r.wait(ctx, func(f session.Frame) (done bool) {
		var e session.Event
		switch {
		case f.Kind == session.KindStdout:
			_, _ = to.Write(f.Body) // fails if the caller has closed the connection
		case json.Unmarshal(f.Body, &e) == nil && e.Event == "end":
			_ = to.Close()
		}
		return false
	})
	c.end(cmp.Or(wrap("read", err), io.EOF))
	_ = to.Close()
}

// Read reads data from the guest. It returns an error if the connection was reset.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if cause := context.Cause(c.ctx); err == io.EOF && cause != nil {
		err = cause
	}
	return n, err
}

// Write writes data to the guest.
func (c *conn) Write(p []byte) (int, error) { return c.out.Write(p) }

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite ends the input of the guest's server.
func (c *conn) CloseWrite() error { return c.out.Close() }

// lastWrite is how long a closed connection waits for a guest that does not read.
const lastWrite = time.Second

// Close closes the connection. Bytes that were written before still reach a guest that reads within a
// second.
func (c *conn) Close() error {
	_ = c.Conn.Close() // cannot fail, as the next
	_ = c.out.Close()
	go func() {
		select {
		case <-c.sent:
		case <-time.After(lastWrite):
		case <-c.ctx.Done():
			return
		}
		c.r.cancel()
	}()
	return nil
}
