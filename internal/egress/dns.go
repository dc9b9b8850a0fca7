package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

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
		bounded := netutil.LimitListener(tcp, maxResolverConns)
		tasks.Go(func() error {
			return serve(&dns.Server{Listener: bounded, ReadTimeout: 2 * time.Second, MaxTCPQueries: 128})
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
	client := s.config.Identify(network, addrPort(w.RemoteAddr()), addrPort(w.LocalAddr()))
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
		s.addAddresses(q, reply, loopback4, loopback6)
		return dns.RcodeSuccess
	}
	pointer, isPointer := addressOf(host)
	if name := s.nameOfGuest(pointer); name != "" {
		addPointer(q, reply, name)
		return dns.RcodeSuccess
	}
	event := Event{Operation: "dns", Host: host, Rule: -1, Outcome: Denied}
	if event.Limit = c.lookUp(); event.Limit != "" {
		c.deny(event)
		return dns.RcodeRefused
	}
	if isPointer {
		return s.answerPointer(pointer, q, reply)
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

// resolveAddress answers with the name's synthetic addresses, of the families that it has.
func (s *Server) resolveAddress(ctx context.Context, host string, q dns.Question, reply *dns.Msg) (rcode int) {
	has, err := s.families(ctx, host)
	if err != nil {
		return rcodeOf(err)
	}
	v4, v6, err := s.names.assign(host)
	if err != nil {
		return dns.RcodeServerFailure
	}
	if !has.v4 {
		v4 = netip.Addr{}
	}
	if !has.v6 {
		v6 = netip.Addr{}
	}
	s.addAddresses(q, reply, v4, v6)
	return dns.RcodeSuccess
}

// families reports whether a host has IPv4 and IPv6 addresses. If a proxy looks up its name, that
// is unknown, and so is whether it exists.
func (s *Server) families(ctx context.Context, host string) (families, error) {
	if s.config.ProxyNames && s.config.Proxy != nil {
		proxy, err := s.config.Proxy(host, 443)
		if proxy != nil || err != nil {
			return families{v4: true}, err
		}
	}
	if a, ok := s.recent.get(host); ok {
		return a.families, a.err
	}
	found, err := s.config.Resolver.LookupNetIP(ctx, "ip", host+".")
	var f families
	for _, a := range found {
		if a.Unmap().Is4() {
			f.v4 = true
		} else {
			f.v6 = true
		}
	}
	if err == nil || rcodeOf(err) == dns.RcodeNameError {
		s.recent.put(host, f, err)
	}
	return f, err
}

// addAddresses adds the address of the question's family, if it is valid.
func (s *Server) addAddresses(q dns.Question, reply *dns.Msg, v4, v6 netip.Addr) {
	switch {
	case q.Qtype == dns.TypeA && v4.IsValid():
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header(q), A: v4.AsSlice()})
	case q.Qtype == dns.TypeAAAA && v6.IsValid():
		reply.Answer = append(reply.Answer, &dns.AAAA{Hdr: header(q), AAAA: v6.AsSlice()})
	}
}

// answerPointer answers a reverse look-up. Only synthetic addresses have names.
func (s *Server) answerPointer(a netip.Addr, q dns.Question, reply *dns.Msg) (rcode int) {
	host, release, ok := s.names.use(a)
	if !ok {
		return dns.RcodeNameError
	}
	release()
	addPointer(q, reply, host)
	return dns.RcodeSuccess
}

func addPointer(q dns.Question, reply *dns.Msg, host string) {
	if q.Qtype == dns.TypePTR {
		reply.Answer = append(reply.Answer, &dns.PTR{Hdr: header(q), Ptr: dns.Fqdn(host)})
	}
}

// nameOfGuest returns the name of an address that never leaves the guest, or "".
func (s *Server) nameOfGuest(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return localhost
	case !a.IsValid():
		return ""
	case a.Is4() && a.As4()[0] == 0, a.IsUnspecified(), a == s.config.Own, slices.Contains(s.config.Guest, a):
		return cmp.Or(s.config.Hostname, localhost)
	}
	return ""
}

// addressOf returns the address of a name for reverse look-ups.
func addressOf(host string) (netip.Addr, bool) {
	reversed, is6 := strings.CutSuffix(host, ".ip6.arpa")
	reversed, is4 := strings.CutSuffix(reversed, ".in-addr.arpa")
	labels := strings.Split(reversed, ".")
	slices.Reverse(labels)
	text := strings.Join(labels, ".")
	if is6 {
		groups := slices.Collect(slices.Chunk([]byte(strings.Join(labels, "")), 4))
		text = string(bytes.Join(groups, []byte(":")))
	}
	a, err := netip.ParseAddr(text)
	return a, err == nil && (is4 && len(labels) == 4 || is6 && len(labels) == 32)
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
