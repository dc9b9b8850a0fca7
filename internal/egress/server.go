package egress

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"gaol/internal/egress/relay"
	"gaol/policy"
)

// Config configures a [Server].
type Config struct {
	// Identify returns the client that a connection or a question belongs to, by the
	// addresses of its two ends. Network is tcp or udp. If the owner is unknown, the
	// client must be one with the fewest rights of all.
	Identify func(network string, guest, to netip.AddrPort) *Client

	// Own is the address of the server's resolver. [Server.Allows] allows connections to it.
	Own netip.Addr

	// Hostname is the guest's name for itself, which leads to localhost. Questions about it are answered without
	// the host's resolver.
	Hostname string

	// MessagesPerSec bounds the messages to the resolver that are read, including messages that no
	// client's limit counts. More wait in the kernel. Zero: there is no limit.
	MessagesPerSec int

	// Connections bounds the connections of all clients together, as their limits should.
	// Relay is where they are carried. Failed, which may be nil, is called when one cannot be started.
	Connections int
	Relay       relay.Place
	Failed      func(error)

	// Resolver looks up names; nil is the host's.
	Resolver *net.Resolver

	// Proxy returns the HTTP proxy through which a host is reached, or nil for none. Nil:
	// there are no proxies. See [NewProxy].
	Proxy func(host string, port uint16) (*url.URL, error)

	// ProxyNames lets proxies resolve names. No address is checked then: the proxy must
	// refuse private ones itself.
	ProxyNames bool
}

// Server controls the egress of one jail.
type Server struct {
	config Config
	names  *names
	work   turns // see ownWork

	ctx    context.Context // of all connections
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// NewServer returns a server. The caller closes it.
func NewServer(c Config) *Server {
	c.Resolver = cmp.Or(c.Resolver, net.DefaultResolver)
	s := &Server{config: c, names: &names{now: time.Now, byName: map[string]*name{}, slots: map[uint32]*name{}}, work: newTurns(1, ownWork)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends all connections and waits until they are closed.
func (s *Server) Close() {
	s.cancel()
	s.tasks.Wait()
}

// Allows decides about a connection that the client is about to make, and reports it if it is
// denied. It allows what serve would refuse later, because that depends on the host's addresses.
// Local decides about ports of the guest's own localhost.
func (s *Server) Allows(c *Client, to netip.AddrPort, local func(port uint16) policy.Decision) bool {
	a := to.Addr()
	if to.Port() == 0 || a == s.config.Own { // programs connect UDP to port 0 to learn their own address
		return true
	}
	t, d := s.decide(c.rules, to)
	if a.IsLoopback() || a.IsUnspecified() {
		isHost := false
		t.name = localhost
		if d, isHost = c.rules.HostPort(to.Port()); !isHost {
			d = local(to.Port())
		}
	}
	if !d.Allowed {
		c.deny(Event{Operation: "connect", Host: t.name, Address: to, Port: to.Port(), Rule: d.Rule, Outcome: Denied})
	}
	return d.Allowed
}

// decide finds the target of a connection and decides whether it is allowed.
func (s *Server) decide(rules *policy.Egress, to netip.AddrPort) (t target, d policy.Decision) {
	t = target{addr: to.Addr(), port: to.Port()}
	if t.isHost() {
		t.name = localhost
		d, _ = rules.HostPort(to.Port())
		return t, d
	}
	if t.name = s.names.find(to.Addr()); t.name != "" {
		return t, rules.Connect(t.name, to.Port())
	}
	if isSynthetic(to.Addr()) {
		return t, policy.Decision{Rule: -1}
	}
	return t, rules.ConnectAddr(to.Addr(), to.Port())
}
