package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
)

// Config is what a [Server] needs from its caller.
type Config struct {
	// Identify returns the client that a connection or a question belongs to, by the
	// addresses of its two ends. Network is tcp or udp. If nothing says whose it is, the
	// client must be one with the fewest rights of all.
	Identify func(network string, guest, to netip.AddrPort) *Client

	// Own is the address of the server's resolver. [Server.Allows] allows connections to it.
	Own netip.Addr

	// Hostname is the guest's name for itself, which leads to localhost, and Guest are its addresses,
	// which have that name. Questions about them are answered without the host's resolver.
	Hostname string
	Guest    []netip.Addr

	// MessagesPerSec bounds the messages to the resolver that are read, also those that no
	// limit of a client counts. More wait in the kernel. Zero: there is no limit.
	MessagesPerSec int

	// Resolver looks up names; nil is the host's.
	Resolver *net.Resolver

	// Proxy returns the HTTP proxy through which a host is reached, or nil for none. Nil:
	// there are no proxies. See [ProxyFromEnvironment].
	Proxy func(host string, port uint16) (*url.URL, error)

	// ProxyNames lets proxies resolve names. No address is checked then: the proxy must
	// refuse private ones itself.
	ProxyNames bool
}

// Server is the way out for one jail.
type Server struct {
	config Config
	names  *names
	recent cache

	ctx    context.Context // of all connections
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// NewServer returns a server. The caller closes it.
func NewServer(c Config) *Server {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	s := &Server{config: c, names: newNames(time.Now), recent: cache{now: time.Now}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends all connections and waits until they are closed. The listeners given to the
// server must be closed before.
func (s *Server) Close() {
	s.cancel()
	s.tasks.Wait()
}

// ServeTCP accepts the guest's connections until the listener is closed. The local address
// of each is where the guest wants to connect to.
func (s *Server) ServeTCP(l *net.TCPListener) error {
	s.tasks.Add(1) // Close waits for this loop, too: it starts tasks
	defer s.tasks.Done()
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil {
				return nil
			}
			if isTemporary(err) {
				time.Sleep(time.Millisecond)
				continue
			}
			return err
		}
		s.tasks.Go(func() { s.serve(c) })
	}
}

// isTemporary reports whether accept may succeed later: a connection was reset while it
// waited, or this process has too many files.
func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// serve serves one connection.
func (s *Server) serve(guest *net.TCPConn) {
	from, to := addrPort(guest.RemoteAddr()), addrPort(guest.LocalAddr())
	client := s.config.Identify("tcp", from, to)
	t, release, d := s.decide(client.rules, to)
	defer release()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	c := &connection{server: s, client: client, guest: guest, target: t, began: time.Now(), allowed: d.Allowed, rule: d.Rule, cancel: cancel}
	c.address.Store(&to)
	if limit := client.connect(c); limit != "" {
		e := c.event(Denied)
		e.Limit, e.Rule = limit, -1
		client.deny(e) // before the guest sees it, because its run may end then
		reset(guest)
		return
	}
	client.wait()
	client.disconnect(c, c.serve(ctx))
}

// Allows decides about a connection that the client is about to make, and reports it if it is
// denied. It allows what serve would refuse later, because that depends on the host's addresses.
// Local decides about ports of the guest's own localhost.
func (s *Server) Allows(c *Client, to netip.AddrPort, local func(port uint16) policy.Decision) bool {
	a := to.Addr()
	if to.Port() == 0 || a == s.config.Own { // programs connect UDP to port 0 to learn their own address
		return true
	}
	if a.IsLoopback() || a.IsUnspecified() {
		d, isHost := c.rules.HostPort(to.Port())
		if !isHost {
			d = local(to.Port())
		}
		if !d.Allowed {
			c.deny(Event{Operation: "connect", Host: localhost, Address: to, Port: to.Port(), Rule: d.Rule, Outcome: Denied})
		}
		return d.Allowed
	}
	t, release, d := s.decide(c.rules, to)
	defer release()
	if !d.Allowed {
		c.deny(Event{Operation: "connect", Host: t.name, Address: to, Port: to.Port(), Rule: d.Rule, Outcome: Denied})
	}
	return d.Allowed
}

// decide finds the target of a connection and decides whether it is allowed. The caller
// calls release when the connection is over.
func (s *Server) decide(rules *policy.Egress, to netip.AddrPort) (t target, release func(), d policy.Decision) {
	release = func() {}
	t = target{addr: to.Addr(), port: to.Port()}
	if t.isHost() {
		t.name = localhost
		d, _ = rules.HostPort(to.Port())
		return t, release, d
	}
	if name, unuse, ok := s.names.use(to.Addr()); ok {
		t.name = name
		return t, unuse, rules.Connect(name, to.Port())
	}
	if isSynthetic(to.Addr()) {
		return t, release, policy.Decision{Rule: -1}
	}
	return t, release, rules.ConnectAddr(to.Addr(), to.Port())
}

// reset closes a connection so that the other side gets ECONNRESET.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // the connection is closed in any case
	}
	_ = c.Close()
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().WithZone("").Unmap(), p.Port())
}

// waitForData waits until a TCP connection has data to read, has ended or has failed. It returns
// how many bytes to copy next: what a read gets without waiting, at least 1. For other connections
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
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	var info *unix.TCPInfo
	_ = raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO) }) // it fails if c is closed
	return err != nil || info == nil || info.State != unix.BPF_TCP_ESTABLISHED
}

// copyChunk is how much is copied before it is counted, and the most that a pipe of
// splice(2) holds if the other side does not read.
const copyChunk = 128 << 10

// pump copies from one connection to another until the end, and then shuts down the other
// one's sending side. It splices in the kernel if both are TCP. Whatever it has copied is counted
// at once, not when a chunk is full.
func pump(to, from net.Conn, count func(int64)) error {
	for {
		n, err := io.CopyN(to, from, waitForData(from))
		count(n)
		if err == io.EOF {
			return closeWrite(to)
		}
		if err != nil {
			return err
		}
	}
}

// closeWrite shuts down the sending side of a connection, if that is possible.
func closeWrite(c net.Conn) error {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}
