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
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

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

// Bounds of the connections of all listeners together, and of one user, or one address of TCP.
const (
	maxConnections = 16 << 10
	maxOfOwner     = 4 << 10
)

// connections bounds the connections. Above a bound, the connection that has been idle for longest is
// closed, so that idle connections never keep out others.
type connections struct {
	max, maxOfOwner int

	mu     sync.Mutex
	count  int
	owners map[string]*owner
}

// owner is a user or an address.
type owner struct {
	count int
	idle  *list.List // of *conn, longest idle first
}

func newConnections() *connections {
	c := &connections{max: maxConnections, maxOfOwner: maxOfOwner, owners: map[string]*owner{}}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur/2 < uint64(c.max) { // sandboxes need files, too
		c.max = int(files.Cur / 2)
		c.maxOfOwner = c.max / 4
	}
	return c
}

// add counts a connection. It returns the one to close for it, which may be the new one.
func (cs *connections) add(c *conn) (excess *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	o := cs.owners[c.owner]
	if o == nil {
		o = &owner{idle: list.New()}
		cs.owners[c.owner] = o
	}
	switch {
	case o.count >= cs.maxOfOwner:
		excess = o.longestIdle(c)
	case cs.count >= cs.max:
		excess = cs.idlest().longestIdle(c)
	}
	o.count++
	cs.count++
	if excess != c {
		c.idle = o.idle.PushBack(c) // until it has sent something
	}
	return excess
}

// longestIdle removes the connection that has been idle for longest from the list, and returns it, or c
// if all are active.
func (o *owner) longestIdle(c *conn) *conn {
	front := o.idle.Front()
	if front == nil {
		return c
	}
	c = o.idle.Remove(front).(*conn)
	c.idle = nil
	return c
}

// idlest returns the owner of most idle connections.
//
// Preconditions: cs.mu is held, and there is a connection.
func (cs *connections) idlest() (most *owner) {
	for _, o := range cs.owners {
		if most == nil || o.idle.Len() > most.idle.Len() {
			most = o
		}
	}
	return most
}

// remove forgets a connection that has been closed.
func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.removed {
		return
	}
	c.removed = true
	o := cs.owners[c.owner]
	cs.setIdle(o, c, false)
	o.count--
	cs.count--
	if o.count == 0 {
		delete(cs.owners, c.owner)
	}
}

// follow is an [http.Server.ConnState].
func (cs *connections) follow(outer net.Conn, state http.ConnState) {
	c := innerConn(outer)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.removed && state != http.StateNew && state != http.StateClosed {
		cs.setIdle(cs.owners[c.owner], c, state == http.StateIdle)
	}
}

// setIdle adds a connection to the idle ones of its owner, or removes it.
//
// Preconditions: cs.mu is held.
func (cs *connections) setIdle(o *owner, c *conn, idle bool) {
	switch {
	case idle && c.idle == nil:
		c.idle = o.idle.PushBack(c)
	case !idle && c.idle != nil:
		o.idle.Remove(c.idle)
		c.idle = nil
	}
}

// ownerOf names the user or address that has opened a connection.
func ownerOf(c *conn) string {
	if c.tenant != nil {
		return c.tenant.Name
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return networkOf(a.AddrPort().Addr())
	}
	return fmt.Sprintf("unknown %v", c.err != nil)
}
