package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

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

	// Of a unix socket: the user that has connected, or why that is unknown.
	tenant *tenant.Tenant
	err    error
}

func (c *conn) Close() error {
	c.connections.remove(c)
	return c.Conn.Close()
}

// CloseWrite lets [http.Server] end an error response before it closes a connection with unread data, which resets it.
func (c *conn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

func (c *conn) isUnix() bool { return c.LocalAddr().Network() == "unix" }

// innerConn returns the connection of a listener without TLS.
func innerConn(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*conn)
}

// connKey is the context key of a connection.
type connKey struct{}

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

	mu        sync.Mutex
	idleSince map[*conn]time.Time // of all; zero while one is in use
	ofOwner   map[string]int      // by user or address
}

func newConnections() *connections {
	c := &connections{max: maxConnections, maxOfOwner: maxOfOwner, idleSince: map[*conn]time.Time{}, ofOwner: map[string]int{}}
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
	if cs.ofOwner[c.owner] >= cs.maxOfOwner || len(cs.idleSince) >= cs.max {
		if excess = cs.excess(c.owner); excess == nil {
			return c
		}
		cs.forget(excess)
	}
	cs.idleSince[c] = time.Now() // until it has sent something
	cs.ofOwner[c.owner]++
	return excess
}

// excess returns the connection of an owner that has been idle for longest or, if the owner has fewer than it may have,
// that of the owner with most idle connections; nil if all are in use.
//
// Preconditions: cs.mu is held.
func (cs *connections) excess(owner string) *conn {
	idle, longest := map[string]int{}, map[string]*conn{}
	for c, since := range cs.idleSince {
		if since.IsZero() {
			continue
		}
		idle[c.owner]++
		if other := longest[c.owner]; other == nil || since.Before(cs.idleSince[other]) {
			longest[c.owner] = c
		}
	}
	if cs.ofOwner[owner] < cs.maxOfOwner {
		for other, n := range idle {
			if n > idle[owner] {
				owner = other
			}
		}
	}
	return longest[owner]
}

// remove forgets a connection that has been closed.
func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.forget(c)
}

// forget is remove with the lock held.
func (cs *connections) forget(c *conn) {
	if _, counted := cs.idleSince[c]; !counted {
		return
	}
	delete(cs.idleSince, c)
	if cs.ofOwner[c.owner]--; cs.ofOwner[c.owner] == 0 {
		delete(cs.ofOwner, c.owner)
	}
}

// follow is an [http.Server.ConnState].
func (cs *connections) follow(outer net.Conn, state http.ConnState) {
	c := innerConn(outer)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, counted := cs.idleSince[c]; !counted || state == http.StateNew {
		return
	}
	var since time.Time
	if state == http.StateIdle {
		since = time.Now()
	}
	cs.idleSince[c] = since
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

// times bound slow clients. There is no http.Server.ReadTimeout or WriteTimeout because requests may run
// for an hour, and read deadlines that expire meanwhile would cancel them.
type times struct {
	header time.Duration // of all headers of a request, from its first byte
	idle   time.Duration // between requests

	// body is the time in which a body must arrive. It gets a second longer with each bodyRate bytes:
	// bodies are bounded, and so is the time.
	body time.Duration

	write time.Duration // in which a client must accept writeChunk bytes
}

var defaultTimes = times{header: 10 * time.Second, idle: 2 * time.Minute, body: 30 * time.Second, write: time.Minute}

const (
	bodyRate   = 256 << 10
	writeChunk = 64 << 10
)

// timedBody is the body of a request, which must arrive before a deadline. The server also reads bodies that no
// handler has read, to find the next request.
type timedBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	deadline time.Time
	received atomic.Int64
	over     bool // the deadline was removed
}

// limit sets the read deadline of a request with a body.
func (b *timedBody) limit(w http.ResponseWriter, r *http.Request, t time.Duration) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return
	}
	b.ReadCloser, b.conn, b.deadline = r.Body, http.NewResponseController(w), time.Now().Add(t)
	b.set(b.deadline) // also if no handler reads it
	r.Body = b
}

func (b *timedBody) Read(p []byte) (n int, err error) {
	if b.over {
		return b.ReadCloser.Read(p)
	}
	b.set(b.deadline.Add(time.Duration(b.received.Load()/bodyRate) * time.Second))
	n, err = b.ReadCloser.Read(p)
	b.received.Add(int64(n))
	if err == io.EOF {
		b.over = true
		b.set(time.Time{}) // the server now waits for the client to close the connection
	}
	return n, err
}

func (b *timedBody) set(deadline time.Time) {
	_ = b.conn.SetReadDeadline(deadline) // fails if the connection is closed
}

// Write writes with a deadline for each part, so that a client that does not read its responses keeps
// no memory for long.
func (c *conn) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0; first = false {
		if err := c.SetWriteDeadline(time.Now().Add(c.writeTime)); err != nil {
			return n, err
		}
		written, err := c.Conn.Write(p[:min(len(p), writeChunk)])
		n += written
		if err != nil {
			return n, err
		}
		p = p[written:]
	}
	return n, nil
}
