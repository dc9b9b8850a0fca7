package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"gaol/cmd/gaol/server/tenant"
)

// maxConnections bounds the connections of one listener. More wait in the kernel.
const maxConnections = 16 << 10

// listener accepts a bounded number of connections, as [conn].
type listener struct {
	net.Listener
	slots  chan struct{}
	closed context.Context
	close  context.CancelFunc
}

func newListener(l net.Listener) *listener {
	wrapped := &listener{Listener: l, slots: make(chan struct{}, maxConnections)}
	wrapped.closed, wrapped.close = context.WithCancel(context.Background())
	return wrapped
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	accepted := &conn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}
	if u, ok := c.(*net.UnixConn); ok {
		accepted.tenant, accepted.err = tenant.OfConn(u)
	}
	return accepted, nil
}

func (l *listener) Close() error {
	l.close()
	return l.Listener.Close()
}

// conn is a connection of a client.
type conn struct {
	net.Conn
	release func()

	// Of a unix socket: the user that has connected, or why that is unknown.
	tenant *tenant.Tenant
	err    error
}

func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

func (c *conn) isUnix() bool { return c.LocalAddr().Network() == "unix" }

// connKey is the context key of a connection.
type connKey struct{}

// connContext makes the connection available to handlers.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request to a [Server].
func connOf(r *http.Request) *conn { return r.Context().Value(connKey{}).(*conn) }
