package egress

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/gateway"
	"gaol/policy"
)

// dialTimeout bounds a dial with all of its addresses. Linux gives up after two minutes.
const dialTimeout = 30 * time.Second

var errNoAddress = errors.New("no address")

// target is the destination of one connection.
type target struct {
	name string // "" if the guest connected to an address
	addr netip.Addr
	port uint16
}

func (t target) host() string {
	if t.name != "" {
		return t.name
	}
	return t.addr.String()
}

// deniedError is an address that the rules refuse.
type deniedError struct {
	addr netip.AddrPort
	rule int
}

func (e *deniedError) Error() string { return fmt.Sprintf("%s is denied", e.addr) }

// route is how a target is reached.
type route struct {
	to     []netip.AddrPort // tried one after another
	check  func(netip.AddrPort) error
	tunnel func(f *os.File) error // through a proxy; may be nil
}

// dial connects a socket of the relay to a target that the rules allow, if they allow its address,
// too. It returns the address.
func (s *Server) dial(ctx context.Context, c *connection) (netip.AddrPort, error) {
	r, err := s.route(ctx, c.client, c.target)
	if err != nil {
		return netip.AddrPort{}, err
	}
	f, to, err := r.connect(ctx, c)
	if err != nil {
		return to, err
	}
	defer f.Close() // the relay has it
	if r.tunnel == nil {
		return to, nil
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) })()
	return to, r.tunnel(f)
}

func (s *Server) route(ctx context.Context, client *Client, t target) (route, error) {
	if t.isHost() {
		return hostRoute(t), nil
	}
	if s.config.Proxy != nil {
		proxy, err := s.config.Proxy(t.host(), t.port)
		if err != nil {
			return route{}, err
		}
		if proxy != nil {
			return s.proxyRoute(ctx, proxy, client, t)
		}
	}
	list, err := s.lookUp(ctx, client, t)
	return route{to: list, check: func(a netip.AddrPort) error { return checkAddress(client.rules, a) }}, err
}

// lookUp returns the addresses of a target.
func (s *Server) lookUp(ctx context.Context, client *Client, t target) (to []netip.AddrPort, err error) {
	if t.name == "" {
		return []netip.AddrPort{netip.AddrPortFrom(t.addr, t.port)}, nil
	}
	release, err := client.pending.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	list, err := s.config.Resolver.LookupNetIP(ctx, "ip", t.name+".") // absolute: the host's search domains do not apply
	for _, a := range list {
		to = append(to, netip.AddrPortFrom(a.Unmap(), t.port))
	}
	return to, err
}

// firstPatience is how long an address may take while there are others, as in RFC 8305. An address that
// took longer is tried again, for longer.
const firstPatience = 300 * time.Millisecond

// connect connects a socket to the first address that the check allows and that accepts.
func (r *route) connect(ctx context.Context, c *connection) (*os.File, netip.AddrPort, error) {
	var failed error
	list := r.to
	for patience := firstPatience; len(list) > 0; patience *= 4 {
		var slow []netip.AddrPort
		for _, to := range list {
			if len(list) == 1 {
				patience = dialTimeout
			}
			f, err := r.try(ctx, c, to, patience)
			if err == nil {
				return f, to, nil
			}
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				slow = append(slow, to)
			}
			failed = cmp.Or(failed, err)
			if ctx.Err() != nil {
				return nil, to, failed
			}
		}
		list = slow
	}
	return nil, netip.AddrPort{}, cmp.Or(failed, errNoAddress)
}

// try connects a new socket of the relay to an address: after an attempt to connect to an IPv4 address,
// Linux does not connect the same socket to one of IPv6.
func (r *route) try(ctx context.Context, c *connection, to netip.AddrPort, most time.Duration) (*os.File, error) {
	f, err := c.socket(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	release, err := c.session.server.work.acquire(ctx)
	if err == nil {
		err = r.start(f, c.client.buffer(), to)
		release()
	}
	if errors.Is(err, unix.EINPROGRESS) {
		err = gateway.Wait(ctx, f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// start begins to connect a socket to an address if the check allows it.
func (r *route) start(f *os.File, buffer int, to netip.AddrPort) error {
	if err := prepareSocket(f, buffer); err != nil {
		return err
	}
	address, err := sockaddr(f, to)
	if err == nil {
		err = r.check(to)
	}
	if err != nil {
		return err
	}
	return gateway.Start(f, address)
}

// sockaddr returns the form of an address for the family of a socket.
func sockaddr(f *os.File, to netip.AddrPort) (a unix.Sockaddr, err error) {
	err = kernfile.Control(f, func(fd int) error {
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		switch {
		case err != nil:
			return os.NewSyscallError("getsockopt", err)
		case domain == unix.AF_INET6:
			a = &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())}
			return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0))
		case !to.Addr().Is4():
			return os.NewSyscallError("connect", unix.ENETUNREACH)
		}
		a = &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}
		return nil
	})
	return a, err
}

// checkAddress refuses addresses that the rules deny. The host's own addresses are refused
// unless a rule names them: services that a firewall hides from others would be reachable.
func checkAddress(rules *policy.Egress, to netip.AddrPort) error {
	d := rules.Resolved(to.Addr(), to.Port())
	if d.Allowed && d.Rule < 0 {
		own, err := isOwn(to.Addr())
		if err != nil {
			return err
		}
		d.Allowed = !own
	}
	if !d.Allowed {
		return &deniedError{to, d.Rule}
	}
	return nil
}

// isOwn reports whether an address is assigned to an interface of the host.
func isOwn(a netip.Addr) (bool, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, own := range list {
		if n, ok := own.(*net.IPNet); ok {
			if b, ok := netip.AddrFromSlice(n.IP); ok && b.Unmap() == a.WithZone("").Unmap() {
				return true, nil
			}
		}
	}
	return false, nil
}

// outcomeOf returns how a dial is reported that has failed and was not denied.
func outcomeOf(err error) Outcome {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return Refused
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.As(err, new(*net.DNSError)):
		return Unreachable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	}
	return Failed
}

const localhost = "localhost"

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// isHost reports whether a target is localhost, where only ports of the host lead to the server.
func (t target) isHost() bool { return t.addr == loopback4 || t.addr == loopback6 }

// hostRoute leads to a port of the host's localhost that the rules allow. If nothing listens on the guest's
// address there, the other one is tried: many servers listen on one of them.
func hostRoute(t target) route {
	other := loopback6
	if t.addr == loopback6 {
		other = loopback4
	}
	return route{
		to:    []netip.AddrPort{netip.AddrPortFrom(t.addr, t.port), netip.AddrPortFrom(other, t.port)},
		check: func(netip.AddrPort) error { return nil },
	}
}

// NewProxy returns a [Config] Proxy. Setting is the URL of an HTTP proxy; "" for the proxies of
// the variables HTTPS_PROXY and HTTP_PROXY of this process; or "none". Hosts in NO_PROXY are
// reached directly. All proxies get CONNECT requests.
func NewProxy(setting string) (func(host string, port uint16) (*url.URL, error), error) {
	c := httpproxy.FromEnvironment()
	switch setting {
	case "none":
		return nil, nil
	case "":
	default:
		if u, err := url.Parse(setting); err != nil || u.Scheme != "http" || u.Hostname() == "" {
			return nil, errors.New("want a URL of the form http://HOST:PORT, or none") // without the URL, which can have a password
		}
		c.HTTPProxy, c.HTTPSProxy = setting, setting
	}
	proxy := c.ProxyFunc()
	return func(host string, port uint16) (*url.URL, error) {
		u := &url.URL{Scheme: "https", Host: net.JoinHostPort(host, fmt.Sprint(port))}
		if port == 80 {
			u.Scheme = "http"
		}
		return proxy(u)
	}, nil
}

// proxyRoute leads through an HTTP proxy. Unless ProxyNames is set, the proxy gets an
// address that has passed the rules, and not the name, which it could resolve to another.
func (s *Server) proxyRoute(ctx context.Context, proxy *url.URL, client *Client, t target) (route, error) {
	if proxy.Scheme != "http" {
		return route{}, fmt.Errorf("egress: proxy %s: only http:// is supported", proxy.Redacted())
	}
	to := net.JoinHostPort(t.host(), fmt.Sprint(t.port))
	if t.name == "" || !s.config.ProxyNames {
		a, err := s.resolveOne(ctx, client, t)
		if err != nil {
			return route{}, err
		}
		to = a.String()
	}
	port, err := strconv.ParseUint(cmp.Or(proxy.Port(), "80"), 10, 16)
	if err != nil {
		return route{}, fmt.Errorf("egress: proxy %s: %w", proxy.Redacted(), err)
	}
	release, err := client.pending.acquire(ctx)
	if err != nil {
		return route{}, err
	}
	defer release()
	list, err := s.config.Resolver.LookupNetIP(ctx, "ip", proxy.Hostname())
	r := route{
		check: func(netip.AddrPort) error { return nil },
		tunnel: func(f *os.File) error {
			if err := requestTunnel(f, proxy, to); err != nil {
				return fmt.Errorf("egress: proxy %s: %w", proxy.Redacted(), err)
			}
			return nil
		},
	}
	for _, a := range list {
		r.to = append(r.to, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	return r, err
}

// maxResponse bounds the response of a proxy, in bytes.
const maxResponse = 64 << 10

func requestTunnel(c io.ReadWriter, proxy *url.URL, to string) error {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(c); err != nil {
		return err
	}
	// The server may speak first, so that nothing may be read beyond the response.
	resp, err := http.ReadResponse(bufio.NewReader(&oneByteReader{io.LimitReader(c, maxResponse)}), req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("CONNECT %s: %s", to, resp.Status)
	}
	return nil
}

// oneByteReader reads a byte at a time, and so never more than its caller needs.
type oneByteReader struct{ io.Reader }

func (r *oneByteReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// resolveOne returns the first address of a target that the rules allow.
func (s *Server) resolveOne(ctx context.Context, client *Client, t target) (netip.AddrPort, error) {
	list, err := s.lookUp(ctx, client, t)
	if err != nil {
		return netip.AddrPort{}, err
	}
	err = errNoAddress
	for _, a := range list {
		if err = checkAddress(client.rules, a); err == nil {
			return a, nil
		}
	}
	return netip.AddrPort{}, err
}
