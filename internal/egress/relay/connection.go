package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// connection is one of the guest's.
type connection struct {
	relay   *relay
	id      uint32
	guest   *net.TCPConn
	target  target
	replies chan Message // of the host
	count   *counter

	ctx    context.Context
	cancel context.CancelFunc // resets it

	failed atomic.Bool // it was reset
	ending sync.Once
	denied atomic.Bool // the guest sent something that the rules deny

	greeted   chan struct{} // closed when the server has sent something, or ended
	isNotHTTP atomic.Bool   // by the first bytes of the server
}

// target is where the guest connects to.
type target struct {
	name string // "" if the bytes are not checked
	port uint16
}

var errRefused = errors.New("relay: refused by the host")

// serve asks the host for a connection to the server, passes on bytes until both sides have ended,
// and reports that.
func (c *connection) serve() {
	defer c.cancel()
	defer context.AfterFunc(c.ctx, func() { reset(c.guest) })()
	upstream, err := c.dial(Message{Kind: Opened, From: AddrPort(c.guest.RemoteAddr()), To: AddrPort(c.guest.LocalAddr())})
	if err != nil {
		if !errors.Is(err, errRefused) {
			c.end(Failed, "")
		}
		reset(c.guest)
		return
	}
	c.run(upstream)
	outcome := Regular
	if c.failed.Load() {
		outcome = Failed
	}
	c.end(outcome, "")
	_ = c.guest.Close() // after the end of both sides, or a reset
}

// dial sends a request for a connection to the server, and creates its sockets.
func (c *connection) dial(request Message) (*net.TCPConn, error) {
	var own []int // the latest socket
	defer func() { CloseAll(own) }()
	c.send(request)
	for {
		select {
		case m := <-c.replies:
			switch {
			case m.Kind == Need:
				CloseAll(own) // the host has closed its copy, or failed to connect it
				own = nil
				s, err := socket()
				if err != nil {
					return nil, err
				}
				own = []int{s}
				c.send(Message{Kind: Socket, FDs: own})
			case m.Kind == Connected && len(own) == 1:
				c.target = target{m.Text, m.To.Port()}
				s := own[0]
				own = nil
				return tcpConn(s)
			case m.Kind == Closed:
				c.ending.Do(func() {})
				return nil, errRefused
			default:
				return nil, errRefused
			}
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

func (c *connection) send(m Message) {
	m.ID = c.id
	_ = send(c.relay.host, m) // it fails only if the host is gone
}

// end reports the end, and waits until the host has noted it: the run may end when the guest sees
// it. It does nothing the second time.
func (c *connection) end(o Outcome, why string) {
	c.ending.Do(func() {
		c.send(Message{Kind: Ended, Outcome: o, Text: why})
		for {
			select {
			case m := <-c.replies:
				if m.Kind == Closed {
					return
				}
			case <-c.relay.done:
				return
			}
		}
	})
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
	stopAll := time.AfterFunc(lingerTimeout, c.cancel)
	sent := c.count.out.Load()
	stopStalled := time.AfterFunc(stallTimeout, func() {
		if c.count.out.Load() == sent && !hasEnded(c.guest) {
			c.cancel()
		}
	})
	context.AfterFunc(c.ctx, func() { stopAll.Stop(); stopStalled.Stop() })
}

// run passes on bytes until both sides have ended. It closes the connection to the server.
func (c *connection) run(upstream *net.TCPConn) {
	defer context.AfterFunc(c.ctx, func() { reset(upstream) })()
	defer func() { _ = upstream.Close() }()
	if c.target.name == "" {
		var out sync.WaitGroup
		out.Go(func() { c.copy(upstream, c.guest, c.countOut) })
		c.copy(c.guest, upstream, c.countIn)
		out.Wait()
		return
	}
	c.check(upstream)
}

// copy copies in one direction. If it fails, both connections are reset, the guest's only when
// the host has noted why.
func (c *connection) copy(to, from net.Conn, count func(int64)) {
	err := pump(to, from, count)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) { // serveHTTP takes over
		return
	}
	if !errors.Is(err, net.ErrClosed) {
		c.failed.Store(true)
	}
	for _, side := range []net.Conn{to, from} {
		if side != c.guest || !c.denied.Load() {
			reset(side)
		}
	}
}

func (c *connection) countIn(n int64)  { c.count.in.Add(n) }
func (c *connection) countOut(n int64) { c.count.out.Add(n) }

// check copies only if the guest's first bytes agree with the target's name. The
// server's bytes pass meanwhile.
func (c *connection) check(upstream net.Conn) {
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
		if c.count.in.Load() > 0 {
			c.refuse(upstream, "a request to a server that speaks first")
			return
		}
		_ = upstream.SetReadDeadline(time.Time{})
		c.serveHTTP(head, upstream)
		return
	case tlsHello:
		var why string
		if head, why = c.checkHello(head); why != "" {
			c.refuse(upstream, why)
			return
		}
	default:
		if head = c.checkOther(upstream, head); head == nil {
			return
		}
	}
	if c.pass(upstream, head) {
		c.copy(upstream, c.guest, c.countOut)
	}
}

// hasGreeted waits until the server has sent something, and reports whether that is not HTTP.
func (c *connection) hasGreeted() bool {
	select {
	case <-c.greeted:
	case <-time.After(greetTimeout):
	case <-c.ctx.Done():
	}
	return c.isNotHTTP.Load()
}

// greet passes on the first bytes of the server.
func (c *connection) greet(upstream net.Conn) {
	defer close(c.greeted)
	first := make([]byte, 512)
	n, _ := upstream.Read(first) // the copy that follows gets an error, too
	if n == 0 {
		return
	}
	if _, err := c.guest.Write(first[:n]); err == nil {
		c.countIn(int64(n))
	}
	c.isNotHTTP.Store(!mayBeResponse(first[:n]))
}

// pass sends bytes of the guest that have been read. It reports whether that worked, and resets
// both connections otherwise.
func (c *connection) pass(upstream net.Conn, b []byte) bool {
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
// request. It returns the rest to be passed on, or nil if the connection has been reset.
func (c *connection) checkOther(upstream net.Conn, head []byte) []byte {
	for sent := 0; ; {
		// In these protocols the guest speaks first, and often ends a line.
		if c.isNotHTTP.Load() || redis().Match(head) || isMongo(head) || isMQTT(head) {
			return head[sent:]
		}
		if isText(head) && c.hasGreeted() {
			continue
		}
		if isText(head) || len(head) > maxHead {
			c.refuse(upstream, "neither TLS nor HTTP, nor a known protocol")
			return nil
		}
		if !c.pass(upstream, head[sent:]) {
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
	if why == "" {
		c.failed.Store(true)
	} else {
		c.deny(why)
	}
	reset(c.guest)
	reset(upstream)
}

// deny reports that the guest has sent something that the rules deny.
func (c *connection) deny(why string) {
	c.denied.Store(true)
	c.end(Denied, why)
}

// reset closes a connection so that the other side gets ECONNRESET.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // the connection is closed in any case
	}
	_ = c.Close()
}

// waitForData waits until a TCP connection has data to read, has ended or has failed. It returns
// how many bytes to copy next: as many as a read gets without waiting, at least 1. For other connections
// it returns copyChunk.
func waitForData(c net.Conn) int64 {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return copyChunk
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return copyChunk
	}
	n := 0
	_ = raw.Read(func(fd uintptr) bool { // the copy that follows returns errors and the end
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		return err != unix.EAGAIN
	})
	return min(max(int64(n), 1), copyChunk)
}

// hasEnded reports whether all that the other side has sent has arrived, and its end.
func hasEnded(c *net.TCPConn) bool {
	var info *unix.TCPInfo
	err := kernfile.Control(c, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		return err
	})
	return err != nil || info.State != unix.BPF_TCP_ESTABLISHED
}

const (
	// copyChunk is how much is copied before it is counted, and the most that a pipe of splice(2)
	// holds if the other side does not read.
	copyChunk = 128 << 10

	// maxSplices bounds the pipes, because their content is charged to no cgroup. Other copies go
	// through a buffer of smallChunk.
	maxSplices = 32
	smallChunk = 8 << 10
)

var (
	splices = make(chan struct{}, maxSplices)
	buffers = sync.Pool{New: func() any { return new([smallChunk]byte) }}
)

// pump copies from one connection to another until EOF, and then shuts down the other
// one's sending side. It counts bytes as soon as they are copied, not when a chunk is full.
func pump(to, from net.Conn, count func(int64)) error {
	for {
		n, err := copySome(to, from, waitForData(from))
		count(n)
		if err == io.EOF {
			return closeWrite(to)
		}
		if err != nil {
			return err
		}
	}
}

// copySome copies at most n bytes, in the kernel if both are TCP and not too many copy that way.
func copySome(to, from net.Conn, n int64) (int64, error) {
	_, fromTCP := from.(*net.TCPConn)
	if _, toTCP := to.(*net.TCPConn); fromTCP && toTCP {
		select {
		case splices <- struct{}{}:
			defer func() { <-splices }()
			return io.CopyN(to, from, n)
		default:
		}
	}
	b := buffers.Get().(*[smallChunk]byte)
	defer buffers.Put(b)
	got, err := from.Read(b[:min(n, smallChunk)])
	if got == 0 {
		return 0, err
	}
	written, failed := to.Write(b[:got])
	return int64(written), failed // the next read returns err again
}

// closeWrite shuts down the sending side of a connection, if that is possible.
func closeWrite(c net.Conn) error {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}

// countedConn counts the bytes read from and written to a server.
type countedConn struct {
	net.Conn
	of *connection
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.of.countIn(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.of.countOut(int64(n))
	return n, err
}

func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
