package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
)

// dialTimeout bounds a dial with all of its addresses. Linux gives up after two minutes.
const dialTimeout = 30 * time.Second

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

// dial connects to a target that the rules allow, if they allow its address, too.
func (s *Server) dial(ctx context.Context, client *Client, t target) (net.Conn, error) {
	rules := client.rules
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if t.isHost() {
		return dialHost(ctx, client, t)
	}
	if s.config.Proxy != nil {
		proxy, err := s.config.Proxy(t.host(), t.port)
		if err != nil {
			return nil, err
		}
		if proxy != nil {
			return s.dialProxy(ctx, proxy, client, t)
		}
	}
	d := net.Dialer{Resolver: s.config.Resolver, ControlContext: func(_ context.Context, _, address string, raw syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return errors.Join(checkAddress(rules, to), limitBuffers(raw, client.buffer()))
	}}
	d.SetMultipathTCP(false) // whose sockets cannot be spliced
	return d.DialContext(ctx, "tcp", net.JoinHostPort(t.absolute(), fmt.Sprint(t.port)))
}

// limitBuffers sets the size of a socket's buffers, in bytes; the kernel doubles it.
func limitBuffers(raw syscall.RawConn, size int) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		set = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, size))
	})
	return errors.Join(err, set)
}

// absolute returns the name with a dot at its end, so that the host's search domains do
// not apply.
func (t target) absolute() string {
	if t.name != "" {
		return t.name + "."
	}
	return t.addr.String()
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

// outcomeOf returns how a failed dial is reported.
func outcomeOf(err error) Outcome {
	denied := errors.As(err, new(*deniedError))
	var timeout interface{ Timeout() bool }
	switch {
	case denied:
		return Denied
	case errors.Is(err, unix.ECONNREFUSED):
		return Refused
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.As(err, new(*net.DNSError)):
		return Unreachable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	}
	return Failed
}
