package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"gaol/internal/egress/relay"
	"gaol/policy"
)

const (
	// lookupTimeout bounds one question to the host's resolver. Resolvers in guests give up
	// after five seconds.
	lookupTimeout = 4 * time.Second

	// maxLookups bounds the questions that are answered at the same time.
	maxLookups = 256

	// maxResolverConns bounds the connections to the resolver, which take descriptors of this
	// process. More wait in the kernel.
	maxResolverConns = 4

	// maxUDP is the maximum size of an answer by UDP to a client that accepts that much.
	maxUDP = 1232
)

// ServeDNS answers the guest's questions until both sockets are closed. Either may be nil.
func (s *Server) ServeDNS(udp net.PacketConn, tcp net.Listener) error {
	slots := make(chan struct{}, maxLookups)
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			s.answer(w, q)
		default:
			_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)) // the guest asks again
		}
	})
	limit := limiter(s.config.MessagesPerSec)
	serve := func(server *dns.Server) error {
		server.Handler = handler
		server.DecorateReader = func(r dns.Reader) dns.Reader { return &limitedReader{r, s.ctx, limit} }
		if err := server.ActivateAndServe(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	var tasks errgroup.Group
	if udp != nil {
		tasks.Go(func() error { return serve(&dns.Server{PacketConn: udp}) })
	}
	if tcp != nil {
		tasks.Go(func() error {
			return serve(&dns.Server{Listener: netutil.LimitListener(tcp, maxResolverConns), ReadTimeout: 2 * time.Second, MaxTCPQueries: 128})
		})
	}
	return tasks.Wait()
}

// limitedReader reads messages at a limited rate. More wait in the kernel, which drops those by
// UDP when a buffer is full.
type limitedReader struct {
	dns.Reader
	ctx   context.Context
	limit *rate.Limiter
}

func (r *limitedReader) ReadUDP(c *net.UDPConn, timeout time.Duration) ([]byte, *dns.SessionUDP, error) {
	_ = r.limit.Wait(r.ctx) // if it ends early, so does c
	return r.Reader.ReadUDP(c, timeout)
}

func (r *limitedReader) ReadPacketConn(c net.PacketConn, timeout time.Duration) ([]byte, net.Addr, error) {
	_ = r.limit.Wait(r.ctx)
	return r.Reader.(dns.PacketConnReader).ReadPacketConn(c, timeout) //nolint:forcetypeassert // it is the library's
}

func (r *limitedReader) ReadTCP(c net.Conn, timeout time.Duration) ([]byte, error) {
	_ = r.limit.Wait(r.ctx)
	return r.Reader.ReadTCP(c, timeout)
}

// answer answers one message.
func (s *Server) answer(w dns.ResponseWriter, q *dns.Msg) {
	reply := new(dns.Msg).SetReply(q)
	reply.RecursionAvailable = true
	size := dns.MinMsgSize
	if opt := q.IsEdns0(); opt != nil {
		size = max(size, min(int(opt.UDPSize()), maxUDP))
		reply.SetEdns0(maxUDP, false)
	}
	network := "udp"
	if _, ok := w.RemoteAddr().(*net.TCPAddr); ok {
		network, size = "tcp", dns.MaxMsgSize
	}
	stop, err := s.work.acquire(s.ctx)
	if err != nil {
		return
	}
	client := s.config.Identify(network, relay.AddrPort(w.RemoteAddr()), relay.AddrPort(w.LocalAddr()))
	stop()
	switch {
	case q.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
	case len(q.Question) != 1:
		reply.Rcode = dns.RcodeFormatError
	case q.Question[0].Qclass != dns.ClassINET:
		reply.Rcode = dns.RcodeRefused
	default:
		reply.Rcode = s.answerQuestion(client, q.Question[0], reply)
	}
	reply.Truncate(size)
	_ = w.WriteMsg(reply) // the guest asks again
}

// answerQuestion adds the answer to a reply and returns its code.
func (s *Server) answerQuestion(c *Client, q dns.Question, reply *dns.Msg) (rcode int) {
	host, ok := hostName(q.Name)
	if !ok {
		return dns.RcodeNameError
	}
	if host == localhost || strings.HasSuffix(host, "."+localhost) || host == policy.LowerName(s.config.Hostname) {
		addAddress(q, reply, loopback4, loopback6)
		return dns.RcodeSuccess
	}
	event := Event{Operation: "dns", Host: host, Rule: -1, Outcome: Denied}
	if event.Limit = c.lookUp(); event.Limit != "" {
		c.deny(event)
		return dns.RcodeRefused
	}
	if strings.HasSuffix(host, ".arpa") { // a reverse look-up: synthetic addresses have no names
		return dns.RcodeNameError
	}
	if d := c.rules.LookUp(host); !d.Allowed {
		event.Rule = d.Rule
		c.deny(event)
		return dns.RcodeRefused
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	release, err := c.pending.acquire(ctx)
	if event.Limit = quotaOf(err); event.Limit != "" {
		c.deny(event)
		return dns.RcodeRefused
	}
	if err != nil {
		return dns.RcodeServerFailure
	}
	defer release()
	return s.resolve(ctx, host, q, reply)
}

// hostName returns the name of a question in lower case and without the dot at its end.
// It returns false for invalid host names: no rule could name them.
func hostName(s string) (string, bool) {
	s = policy.LowerName(strings.TrimSuffix(s, "."))
	return s, policy.ValidName(s)
}

// resolve asks the host's resolver.
func (s *Server) resolve(ctx context.Context, host string, q dns.Question, reply *dns.Msg) (rcode int) {
	r, name := s.config.Resolver, host+"."
	var err error
	switch q.Qtype {
	case dns.TypeA, dns.TypeAAAA:
		return s.resolveAddress(ctx, host, q, reply)
	case dns.TypeTXT:
		var list []string
		list, err = r.LookupTXT(ctx, name)
		for _, text := range list {
			reply.Answer = append(reply.Answer, &dns.TXT{Hdr: header(q), Txt: split255(text)})
		}
	case dns.TypeMX:
		var list []*net.MX
		list, err = r.LookupMX(ctx, name)
		for _, mx := range list {
			reply.Answer = append(reply.Answer, &dns.MX{Hdr: header(q), Preference: mx.Pref, Mx: dns.Fqdn(mx.Host)})
		}
	case dns.TypeSRV:
		var list []*net.SRV
		_, list, err = r.LookupSRV(ctx, "", "", name)
		for _, srv := range list {
			reply.Answer = append(reply.Answer, &dns.SRV{Hdr: header(q), Priority: srv.Priority, Weight: srv.Weight, Port: srv.Port, Target: dns.Fqdn(srv.Target)})
		}
	case dns.TypeNS:
		var list []*net.NS
		list, err = r.LookupNS(ctx, name)
		for _, ns := range list {
			reply.Answer = append(reply.Answer, &dns.NS{Hdr: header(q), Ns: dns.Fqdn(ns.Host)})
		}
	default:
		// Among them HTTPS and SVCB: a hint of an address, or a key that encrypts the server
		// name, could not be used.
		return dns.RcodeSuccess
	}
	return rcodeOf(err)
}

// resolveAddress answers with the name's synthetic address, if it has one of that family. The real addresses
// are not kept: each dial looks them up and checks them.
func (s *Server) resolveAddress(ctx context.Context, host string, q dns.Question, reply *dns.Msg) (rcode int) {
	looksUp, err := s.proxyLooksUp(host)
	var found []netip.Addr
	if err == nil && !looksUp {
		found, err = s.config.Resolver.LookupNetIP(ctx, "ip", host+".") // it merges the questions for both families
	}
	if err != nil {
		return rcodeOf(err)
	}
	v4, v6, err := s.names.assign(host)
	if err != nil {
		return dns.RcodeServerFailure
	}
	is4 := q.Qtype == dns.TypeA
	if looksUp && is4 || slices.ContainsFunc(found, func(a netip.Addr) bool { return a.Unmap().Is4() == is4 }) {
		addAddress(q, reply, v4, v6)
	}
	return dns.RcodeSuccess
}

// proxyLooksUp reports whether a proxy looks up a name. Whether the name exists, and its families, are unknown then.
func (s *Server) proxyLooksUp(host string) (bool, error) {
	if !s.config.ProxyNames || s.config.Proxy == nil {
		return false, nil
	}
	proxy, err := s.config.Proxy(host, 443)
	return proxy != nil, err
}

// addAddress adds the address of the question's family.
func addAddress(q dns.Question, reply *dns.Msg, v4, v6 netip.Addr) {
	switch q.Qtype {
	case dns.TypeA:
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header(q), A: v4.AsSlice()})
	case dns.TypeAAAA:
		reply.Answer = append(reply.Answer, &dns.AAAA{Hdr: header(q), AAAA: v6.AsSlice()})
	}
}

func header(q dns.Question) dns.RR_Header {
	return dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: uint32(TTL / time.Second)}
}

// split255 splits a text into the strings of a TXT record.
func split255(s string) []string {
	parts := []string{}
	for len(s) > 255 {
		parts, s = append(parts, s[:255]), s[255:]
	}
	return append(parts, s)
}

// rcodeOf returns the code for an error of the host's resolver.
func rcodeOf(err error) int {
	var e *net.DNSError
	switch {
	case err == nil:
		return dns.RcodeSuccess
	case errors.As(err, &e) && e.IsNotFound:
		return dns.RcodeNameError
	}
	return dns.RcodeServerFailure
}

// The ranges of synthetic addresses: those for benchmarks of networks, which no host on the
// internet has.
var (
	syntheticV4 = netip.MustParsePrefix("198.18.0.0/15")
	syntheticV6 = netip.MustParsePrefix("2001:2::/48")
)

// TTL is the time to live of the addresses in the answers.
const TTL = time.Minute

// maxNames bounds the names that have an address at the same time.
const maxNames = 16 << 10

// names maps names to synthetic addresses, and back. A name keeps its address for as long
// as possible: programs may use one long after its TTL.
type names struct {
	now func() time.Time

	mu     sync.Mutex
	byName map[string]*name
	slots  map[uint32]*name // by the host part modulo maxNames
	last   uint32           // the host part that was assigned last
}

type name struct {
	text    string
	host    uint32 // of both of its addresses
	expires time.Time
}

// assign returns the addresses of a name, and renews them for TTL.
func (n *names) assign(text string) (v4, v6 netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.byName[text]
	if found == nil {
		host, ok := n.free()
		if !ok {
			return v4, v6, errors.New("all synthetic addresses are in use")
		}
		found = &name{text: text, host: host}
		n.byName[text], n.slots[host%maxNames] = found, found
	}
	found.expires = n.now().Add(TTL)
	v4, v6 = addresses(found.host)
	return v4, v6, nil
}

// free returns an unused host part, and removes an expired name for it. There are eight times as many as names, so
// that one is reused late.
func (n *names) free() (host uint32, ok bool) {
	const most = 8*maxNames - 2 // not the first and the last of the IPv4 range
	for range maxNames {
		n.last = n.last%most + 1
		old := n.slots[n.last%maxNames]
		if old == nil {
			return n.last, true
		}
		if !old.expires.After(n.now()) {
			delete(n.byName, old.text)
			return n.last, true
		}
	}
	return 0, false
}

// find returns the name of a synthetic address, or "" if the address is not assigned.
func (n *names) find(a netip.Addr) string {
	host, ok := hostPart(a)
	n.mu.Lock()
	defer n.mu.Unlock()
	if found := n.slots[host%maxNames]; ok && found != nil && found.host == host {
		return found.text
	}
	return ""
}

// addresses returns the two synthetic addresses with a host part.
func addresses(host uint32) (v4, v6 netip.Addr) {
	a4, a6 := syntheticV4.Addr().As4(), syntheticV6.Addr().As16()
	binary.BigEndian.PutUint32(a4[:], binary.BigEndian.Uint32(a4[:])|host)
	binary.BigEndian.PutUint32(a6[12:], host)
	return netip.AddrFrom4(a4), netip.AddrFrom16(a6)
}

// hostPart is the inverse of addresses.
func hostPart(a netip.Addr) (uint32, bool) {
	switch {
	case syntheticV4.Contains(a):
		a4 := a.As4()
		return binary.BigEndian.Uint32(a4[:]) &^ binary.BigEndian.Uint32(syntheticV4.Addr().AsSlice()), true
	case syntheticV6.Contains(a):
		a16 := a.As16()
		host := binary.BigEndian.Uint32(a16[12:])
		_, v6 := addresses(host)
		return host, v6 == a
	}
	return 0, false
}

// isSynthetic reports whether an address belongs to the ranges of synthetic addresses.
func isSynthetic(a netip.Addr) bool { return syntheticV4.Contains(a) || syntheticV6.Contains(a) }
