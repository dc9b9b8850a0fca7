package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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
	own, other, err := socketPair()
	if err != nil {
		return nil, wrap("dial", err)
	}
	stdout := session.NewBuffer()
	r, _, end, err := open[struct{}](ctx, sb.c, message{
		Request: session.Request{Method: "dial", Stdin: true}, doing: "dial", in: requestjson.InPort{InSandbox: sb.in(), Port: port},
		buffers: map[session.Kind]*session.Buffer{session.KindStdout: stdout},
	})
	if err != nil {
		_ = own.Close()
		_ = other.Close()
		return nil, err
	}
	c := &conn{Conn: own, r: r, closed: make(chan struct{})}
	sb.c.work.Go(func() {
		defer end()
		c.attend(other, stdout)
	})
	return c, nil
}

// socketPair returns the ends of a stream in this process. The kernel implements its deadlines and
// buffers.
func socketPair() (a, b *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	var ends [2]net.Conn
	var errs [2]error
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], errs[i] = net.FileConn(f)
		_ = f.Close() // FileConn made a duplicate
	}
	if err := errors.Join(errs[:]...); err != nil {
		for _, c := range ends {
			if c != nil {
				_ = c.Close()
			}
		}
		return nil, nil, err
	}
	return ends[0].(*net.UnixConn), ends[1].(*net.UnixConn), nil
}

// conn is a connection to a guest's server.
type conn struct {
	net.Conn // one end of a stream; attend holds the other one

	r      *request
	once   sync.Once
	closed chan struct{}

	mu  sync.Mutex
	err error // error that terminated the connection; nil if a peer closed it normally
}

// Read reads data from the guest. It returns an error if the connection was reset.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err != nil {
			err = c.err
		}
	}
	return n, err
}

// CloseWrite ends the input of the guest's server.
func (c *conn) CloseWrite() error { return c.Conn.(*net.UnixConn).CloseWrite() }

// Close closes the connection. Bytes that were written before still reach a guest that reads within a
// second.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// lastWrite is how long a closed connection waits for a guest that does not read.
const lastWrite = time.Second

// attend copies in both directions until the request has ended.
func (c *conn) attend(other *net.UnixConn, stdout *session.Buffer) {
	defer func() { _ = other.Close() }()
	var pumps sync.WaitGroup
	defer pumps.Wait()
	ctx, cancel := context.WithCancel(c.r.c.ctx)
	defer cancel()
	received := make(chan struct{})
	pumps.Go(func() {
		defer close(received)
		_, _ = io.Copy(other, stdout) // until the end, or Close
		_ = other.CloseWrite()
	})
	pumps.Go(func() { c.send(ctx, other) })
	_, err := c.r.wait(c.r.c.ctx, func(f session.Frame) (done bool) {
		var e session.Event
		if json.Unmarshal(f.Body, &e) == nil && e.Event == "end" {
			stdout.Close(nil)
		}
		return false
	})
	c.mu.Lock()
	c.err = wrap("read", err)
	c.mu.Unlock()
	stdout.Close(nil)
	select {
	case <-received:
	case <-c.closed:
	case <-c.r.c.ctx.Done():
	}
	_ = other.Close() // which ends the pumps
}

// send sends the caller's data, and closes the connection when the caller has closed it.
func (c *conn) send(ctx context.Context, other net.Conn) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-c.closed:
			time.AfterFunc(lastWrite, stop)
		case <-sending.Done():
		}
	}()
	_ = c.r.feed(sending, other) // fails if the request has ended
	select {
	case <-c.closed:
		c.r.cancel()
	case <-ctx.Done():
	}
}
