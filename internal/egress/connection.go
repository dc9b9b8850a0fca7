package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one of the guest's.
type connection struct {
	server *Server
	client *Client
	guest  *net.TCPConn
	target target
	began  time.Time

	allowed bool // by the rules about its name and port
	rule    int

	address atomic.Pointer[netip.AddrPort] // the guest's destination, then the server's
	in, out atomic.Int64
	failed  atomic.Bool // it was reset
	why     string      // what the guest sent that the rules deny

	greeted   chan struct{} // closed when the server has sent something, or ended
	isNotHTTP atomic.Bool   // by the first bytes of the server

	cancel context.CancelFunc // resets it
}

// event describes the connection so far.
func (c *connection) event(o Outcome) Event {
	return Event{
		Operation: "connect", Host: c.target.name, Address: *c.address.Load(), Port: c.target.port, Rule: c.rule,
		BytesIn: c.in.Load(), BytesOut: c.out.Load(), Duration: time.Since(c.began), Outcome: o,
	}
}

// serve connects to the server and passes on bytes until both sides have ended. It returns how
// that went.
func (c *connection) serve(ctx context.Context) Event {
	if !c.allowed {
		reset(c.guest)
		return c.event(Denied)
	}
	upstream, err := c.server.dial(ctx, c.client, c.target)
	if err != nil {
		return c.notDialed(err)
	}
	address := addrPort(upstream.RemoteAddr())
	c.address.Store(&address)
	c.run(ctx, upstream)
	switch {
	case c.why != "":
		e := c.event(Denied)
		e.Why = c.why
		return e
	case c.failed.Load():
		return c.event(Failed)
	}
	return c.event(Closed)
}

// Bytes that a guest has sent before it ended, and that do not fit in the buffer of c.guest, are
// memory of the kernel that no run is charged for. If the server reads none for stallTimeout, the
// connection is reset. The server has lingerTimeout for the rest.
const (
	lingerTimeout = 10 * time.Second
	stallTimeout  = 100 * time.Millisecond
)

// linger ends a connection whose guest has ended.
func (c *connection) linger() {
	time.AfterFunc(lingerTimeout, c.cancel)
	sent := c.out.Load()
	time.AfterFunc(stallTimeout, func() {
		if c.out.Load() == sent && !hasEnded(c.guest) {
			c.cancel()
		}
	})
}

// notDialed resets a connection whose server could not be reached, or may not.
func (c *connection) notDialed(err error) Event {
	reset(c.guest)
	var denied *deniedError
	if errors.As(err, &denied) {
		e := c.event(Denied)
		e.Address, e.Rule, e.Resolved = denied.addr, denied.rule, c.target.name != ""
		return e
	}
	return c.event(outcomeOf(err))
}

// run passes on bytes until both sides have ended. It closes both connections.
func (c *connection) run(ctx context.Context, upstream net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closeBoth := context.AfterFunc(ctx, func() {
		reset(c.guest)
		reset(upstream)
	})
	defer closeBoth()
	defer func() { _, _ = upstream.Close(), c.guest.Close() }() // after the end of both, or a reset
	if !c.client.rules.DistinguishesNames(c.target.port) || c.target.name == "" || c.target.isHost() {
		c.splice(upstream)
		return
	}
	c.check(ctx, upstream)
}

// splice copies in both directions.
func (c *connection) splice(upstream net.Conn) {
	var out sync.WaitGroup
	out.Go(func() { c.copy(upstream, c.guest, c.countOut) })
	c.copy(c.guest, upstream, c.countIn)
	out.Wait()
}

// copy copies in one direction. If it fails, both connections are reset.
func (c *connection) copy(to, from net.Conn, count func(int64)) {
	err := pump(to, from, count)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) { // serveHTTP takes over
		return
	}
	if !errors.Is(err, net.ErrClosed) {
		c.failed.Store(true)
	}
	reset(to)
	reset(from)
}

func (c *connection) countIn(n int64) {
	c.in.Add(n)
	c.client.countIn(n)
}

func (c *connection) countOut(n int64) {
	c.out.Add(n)
	c.client.countOut(n)
}

// check copies only if what the guest says first agrees with the target's name. The
// server's bytes pass meanwhile.
func (c *connection) check(ctx context.Context, upstream net.Conn) {
	c.greeted = make(chan struct{})
	var back sync.WaitGroup
	back.Go(func() {
		c.greet(upstream)
		c.copy(c.guest, upstream, c.countIn)
	})
	defer back.Wait()
	head, p, err := sniff(c.guest)
	if err != nil {
		c.refuse(upstream, "")
		return
	}
	switch p {
	case http1:
		// Nothing has been read from a server that waits for a request.
		_ = upstream.SetReadDeadline(time.Unix(1, 0)) // it fails only if upstream is closed
		back.Wait()
		if c.in.Load() > 0 {
			c.refuse(upstream, "a request to a server that speaks first")
			return
		}
		_ = upstream.SetReadDeadline(time.Time{})
		c.serveHTTP(ctx, &prefixConn{c.guest, head}, upstream)
		return
	case tlsHello:
		var why string
		if head, why = c.checkHello(head); why != "" {
			c.refuse(upstream, why)
			return
		}
	default:
		if head = c.checkOther(ctx, upstream, head); head == nil {
			return
		}
	}
	if c.send(upstream, head) {
		c.copy(upstream, c.guest, c.countOut)
	}
}

// hasGreeted waits until the server has sent something, and reports whether that is not HTTP.
func (c *connection) hasGreeted(ctx context.Context) bool {
	select {
	case <-c.greeted:
	case <-time.After(greetTimeout):
	case <-ctx.Done():
	}
	return c.isNotHTTP.Load()
}

// greet passes on the first bytes of the server.
func (c *connection) greet(upstream net.Conn) {
	defer close(c.greeted)
	first := make([]byte, 512)
	n, err := upstream.Read(first)
	if n == 0 {
		return
	}
	if _, err = c.guest.Write(first[:n]); err == nil {
		c.countIn(int64(n))
	}
	c.isNotHTTP.Store(!mayBeResponse(first[:n]))
}

// send sends bytes of the guest that have been read. It reports whether that worked, and resets
// both connections otherwise.
func (c *connection) send(upstream net.Conn, b []byte) bool {
	n, err := upstream.Write(b)
	c.countOut(int64(n))
	if err != nil {
		c.refuse(upstream, "")
	}
	return err == nil
}

// checkOther passes on bytes that begin with head until it is clear that the server does not take
// them for HTTP: it has answered something else, or the protocol is known. Until then no line
// may end, because a server that is more lenient than every parser could take it for a
// request. It returns what remains to be passed on, or nil if the connection has been reset.
func (c *connection) checkOther(ctx context.Context, upstream net.Conn, head []byte) []byte {
	for sent := 0; ; {
		if c.isNotHTTP.Load() || isKnown(head) {
			return head[sent:]
		}
		if isText(head) && c.hasGreeted(ctx) {
			continue
		}
		if isText(head) || len(head) > maxHead {
			c.refuse(upstream, "neither TLS nor HTTP, nor a known protocol")
			return nil
		}
		if !c.send(upstream, head[sent:]) {
			return nil
		}
		sent = len(head)
		more := make([]byte, 4<<10)
		n, err := c.guest.Read(more)
		head = append(head, more[:n]...)
		if errors.Is(err, io.EOF) {
			return head[sent:]
		}
		if err != nil {
			c.refuse(upstream, "")
			return nil
		}
	}
}

// checkHello reads the rest of a ClientHello that begins with head. It returns all that it
// has read, and why the rules deny it, or "".
func (c *connection) checkHello(head []byte) (read []byte, why string) {
	rest := &prefixConn{c.guest, head}
	serverName, read, err := readHello(rest)
	read = append(read, rest.head...)
	switch {
	case err != nil:
		return read, "a TLS handshake without a ClientHello"
	case !sameName(serverName, c.target.name):
		return read, "server name " + strconv.Quote(serverName)
	}
	return read, ""
}

// refuse resets both connections. If why is not empty, the rules are the reason.
func (c *connection) refuse(upstream net.Conn, why string) {
	if c.why = why; why == "" {
		c.failed.Store(true)
	}
	reset(c.guest)
	reset(upstream)
}

func (c *connection) serveHTTP(ctx context.Context, guest, upstream net.Conn) {
	c.why = serveHTTP(ctx, guest, &countedConn{upstream, c}, c.target, func(ctx context.Context) (net.Conn, error) {
		again, err := c.server.dial(ctx, c.client, c.target)
		if err != nil {
			return nil, err
		}
		return &countedConn{again, c}, nil
	})
}

// countedConn counts the bytes read from and written to a server.
type countedConn struct {
	net.Conn
	c *connection
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.c.countIn(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.c.countOut(int64(n))
	return n, err
}

func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
