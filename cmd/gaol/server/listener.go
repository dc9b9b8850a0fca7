package server

import (
	"bytes"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/tenant"
)

// listener accepts a bounded number of connections, as [conn].
type listener struct {
	net.Listener
	connections *connections
	writeTime   time.Duration
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		accepted := &conn{Conn: c, connections: l.connections, writeTime: l.writeTime}
		if u, ok := c.(*net.UnixConn); ok {
			accepted.tenant, accepted.err = tenant.OfConn(u)
		}
		accepted.owner = ownerOf(accepted)
		excess := l.connections.add(accepted)
		if excess != nil {
			_ = excess.Close()
		}
		if excess != accepted {
			return accepted, nil
		}
	}
}

// conn is a connection of a client.
type conn struct {
	net.Conn
	connections *connections
	owner       string
	writeTime   time.Duration

	// Of connections, guarded by its lock.
	idle    *list.Element // nil while it is in use
	removed bool

	// Of a unix socket: the user that has connected, or why that is unknown.
	tenant *tenant.Tenant
	err    error

	// handled is set when the first handler starts: later bytes may be a guest's.
	handled atomic.Bool
}

func (c *conn) Close() error {
	c.connections.remove(c)
	return c.Conn.Close()
}

func (c *conn) isUnix() bool { return c.LocalAddr().Network() == "unix" }

// problemListener accepts connections on which errors of [http.Server] itself are problems until the first
// handler starts. Later ones stay plain text: a guest could print the same bytes.
type problemListener struct{ net.Listener }

func (l problemListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return problemConn{c}, nil
}

type problemConn struct{ net.Conn }

// Read also reports the mistake to clients that speak plain HTTP to a TLS port, as [http.Server] does.
func (c problemConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.Conn != nil {
		_, _ = io.WriteString(e.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis port needs HTTPS.\n")
		_ = c.Close()
	}
	return n, err
}

// serverError follows the status line of responses to requests that [http.Server] cannot parse. It
// writes each of them with one call.
const serverError = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

func (c problemConn) Write(p []byte) (int, error) {
	if innerConn(c).handled.Load() {
		return c.Conn.Write(p)
	}
	line, _, ok := bytes.Cut(p[:min(len(p), 512)], []byte(serverError))
	_, text, isStatus := bytes.Cut(line, []byte("HTTP/1.1 "))
	if !ok || !isStatus || len(text) < 3 {
		return c.Conn.Write(p)
	}
	status, err := strconv.Atoi(string(text[:3]))
	if err != nil {
		return c.Conn.Write(p)
	}
	body := &buffered{header: http.Header{}}
	api.WriteProblem(body, status, "the request is not valid HTTP/1.1, or too large")
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), body.header.Get("Content-Type"), body.Len())
	if _, err := c.Conn.Write(append([]byte(head), body.Bytes()...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// buffered is a response in memory.
type buffered struct {
	bytes.Buffer
	header http.Header
}

func (b *buffered) Header() http.Header { return b.header }
func (b *buffered) WriteHeader(int)     {}

// innerConn returns the connection of a listener's without its layers.
func innerConn(c net.Conn) *conn {
	c = c.(problemConn).Conn
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*conn)
}

// connKey is the context key of a connection.
type connKey struct{}

// connContext makes the connection available to handlers.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, innerConn(c))
}

// markHandled records that a connection has had a handler.
func markHandled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connOf(r).handled.Store(true)
		next.ServeHTTP(w, r)
	})
}

// connOf returns the connection of a request to a [Server].
func connOf(r *http.Request) *conn { return r.Context().Value(connKey{}).(*conn) }
