package mcpstdio

import (
	"context"
	"net"
	"net/http"
	"sync"

	"gaol/runtime/client"
)

// Local returns a client of a server in this process, which serves until stop is called.
func Local(h http.Handler) (c *client.HTTP, stop func() error) {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	server := &http.Server{Handler: h}  //nolint:gosec // its only client is this program
	go func() { _ = server.Serve(l) }() // returns when l is closed
	return &client.HTTP{URL: "http://gaol", Client: &http.Client{Transport: &http.Transport{DialContext: l.dial}}}, server.Close
}

// listener accepts connections of this process.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.close()
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	own, other := net.Pipe()
	select {
	case l.conns <- other:
		return own, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
