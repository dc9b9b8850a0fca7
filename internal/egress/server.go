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

	"gaol/policy"
)

// Config is what a [Server] needs from its caller.
type Config struct {
	// Identify returns the client that a connection or a question belongs to, by the
	// addresses of its two ends. Network is tcp or udp. If nothing says whose it is, the
	// client must be one with the fewest rights of all.
	Identify func(network string, guest, to netip.AddrPort) *Client

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

	ctx    context.Context // of all connections
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// NewServer returns a server. The caller closes it.
func NewServer(c Config) *Server {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	s := &Server{config: c, names: newNames(time.Now)}
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
	start := time.Now()
	from, to := addrPort(guest.RemoteAddr()), addrPort(guest.LocalAddr())
	client := s.config.Identify("tcp", from, to)
	event := Event{Operation: "connect", Address: to, Port: to.Port()}
	if limit := client.connect(); limit != "" {
		event.Limit, event.Rule = limit, -1
		refuse(guest, client, event)
		return
	}
	defer client.disconnect()
	t, release, d := s.decide(client.rules, to)
	defer release()
	event.Host, event.Rule = t.name, d.Rule
	if !d.Allowed {
		refuse(guest, client, event)
		return
	}
	upstream, err := s.dial(s.ctx, client, t)
	if err != nil {
		event.Duration = time.Since(start)
		notDialed(guest, client, event, err)
		return
	}
	event.Address = addrPort(upstream.RemoteAddr())
	c := &connection{server: s, client: client, guest: guest, target: t}
	c.run(s.ctx, upstream)
	event.BytesIn, event.BytesOut, event.Duration, event.Outcome = c.in.Load(), c.out.Load(), time.Since(start), Closed
	switch {
	case c.why != "":
		event.Why, event.Outcome = c.why, Denied
		client.deny(event)
		return
	case c.failed.Load():
		event.Outcome = Failed
	}
	client.observe(event)
}

// notDialed resets a connection whose server could not be reached, or may not.
func notDialed(guest *net.TCPConn, c *Client, e Event, err error) {
	var denied *deniedError
	if errors.As(err, &denied) {
		e.Address, e.Rule = denied.addr, denied.rule
		refuse(guest, c, e)
		return
	}
	reset(guest)
	e.Outcome = outcomeOf(err)
	c.observe(e)
}

// decide finds the target of a connection and decides whether it is allowed. The caller
// calls release when the connection is over.
func (s *Server) decide(rules *policy.Egress, to netip.AddrPort) (t target, release func(), d policy.Decision) {
	release = func() {}
	t = target{addr: to.Addr(), port: to.Port()}
	if name, unuse, ok := s.names.use(to.Addr()); ok {
		t.name = name
		return t, unuse, rules.Connect(name, to.Port())
	}
	if isSynthetic(to.Addr()) {
		return t, release, policy.Decision{Rule: -1}
	}
	return t, release, rules.ConnectAddr(to.Addr(), to.Port())
}

// refuse resets a connection that a rule or a limit denies.
func refuse(guest *net.TCPConn, c *Client, e Event) {
	reset(guest)
	e.Outcome = Denied
	c.deny(e)
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

// copyChunk is how much is copied before it is counted, and the most that a pipe of
// splice(2) holds if the other side does not read.
const copyChunk = 128 << 10

// pump copies from one connection to another until the end, and then shuts down the other
// one's sending side. It splices in the kernel if both are TCP.
func pump(to, from net.Conn, count func(int64)) error {
	for {
		n, err := io.CopyN(to, from, copyChunk)
		count(n)
		if err == io.EOF {
			if t, ok := to.(interface{ CloseWrite() error }); ok {
				return t.CloseWrite()
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}
