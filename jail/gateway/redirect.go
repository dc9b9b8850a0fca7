package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// openRedirected opens the gateway on kernels without socket look-ups, by NAT: connections lead to one listener for each address
// family, which asks the kernel for their original destinations. The kernel does not report the destinations of datagrams; only datagrams to
// the resolver and localhost are allowed in any case. The sizes of buffers have no limits, because gVisor's memory does.
//
// Preconditions: the thread is in the network namespace, in which no guest has been started.
func (g *Gateway) openRedirected(c Config) error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	for _, a := range []netip.Addr{guestV4, guestV6, Resolver} {
		if err := addAddress(a); err != nil {
			return fmt.Errorf("add address %s to lo: %w", a, err)
		}
	}
	if err := errors.Join(g.listenResolver(), g.listenHost(c.Host)); err != nil { // first, so that other listeners get other ports
		return err
	}
	for _, local := range []netip.Addr{loopback4, netip.IPv6Loopback()} {
		if err := g.redirect(local, c); err != nil {
			return err
		}
	}
	return nil
}

// redirect opens the listener of an address family, on its address of localhost, and redirects connections to it.
//
// Preconditions: as openRedirected.
func (g *Gateway) redirect(local netip.Addr, c Config) error {
	family := nl.GetIPFamily(local.AsSlice())
	if err := routeToLoopback(family); err != nil {
		return fmt.Errorf("route all addresses to lo: %w", err)
	}
	l, err := g.listenTCP(netip.AddrPortFrom(local, 0).String())
	if err != nil {
		return err
	}
	g.redirected = append(g.redirected, redirected{l})
	closed, err := g.reservePort(local)
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	if err := setNAT(family, c.natRules(local, port, closed)); err != nil {
		return fmt.Errorf("replace table nat: %w", err)
	}
	return nil
}

// natRules returns the rules of one address family. The listener has port; nothing listens on closed.
func (c Config) natRules(local netip.Addr, port, closed uint16) []natRule {
	rules := []natRule{{host: true}}
	localhost := netip.PrefixFrom(local, local.BitLen())
	if local.Is4() {
		localhost = netip.PrefixFrom(local, 8) // 127.0.0.0/8
		resolver := netip.PrefixFrom(Resolver, Resolver.BitLen())
		for _, protocol := range []uint16{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			rules = append(rules,
				natRule{to: resolver, protocol: protocol, ports: PortRange{53, 53}},
				natRule{to: resolver, protocol: protocol, port: closed})
		}
	}
	for _, p := range c.Host {
		rules = append(rules, natRule{to: netip.PrefixFrom(local, local.BitLen()), protocol: unix.IPPROTO_TCP, ports: PortRange{p, p}})
	}
	for _, p := range c.TCP {
		rules = append(rules, natRule{to: localhost, protocol: unix.IPPROTO_TCP, ports: p})
	}
	if c.UDP {
		rules = append(rules, natRule{to: localhost, protocol: unix.IPPROTO_UDP})
	}
	return append(rules,
		natRule{to: localhost, protocol: unix.IPPROTO_TCP, port: closed},
		natRule{protocol: unix.IPPROTO_TCP, port: port},
		natRule{protocol: unix.IPPROTO_UDP, port: closed})
}

// routeToLoopback routes all addresses of a family to lo. There are no local routes to prefixes in gVisor.
func routeToLoopback(family int) error {
	all := nl.NewRtMsg()
	all.Family, all.Table, all.Scope, all.Type = uint8(family), unix.RT_TABLE_MAIN, unix.RT_SCOPE_HOST, unix.RTN_UNICAST
	size := net.IPv4len
	if family == unix.AF_INET6 {
		size = net.IPv6len
	}
	return change(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, all, nl.NewRtAttr(unix.RTA_DST, make([]byte, size)), nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(loopback)))
}

// reservePort returns a port that refuses connections and datagrams, and that guests cannot use.
func (g *Gateway) reservePort(local netip.Addr) (port uint16, err error) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		fd, err := unix.Socket(nl.GetIPFamily(local.AsSlice()), kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, os.NewSyscallError("socket", err)
		}
		g.owned = append(g.owned, os.NewFile(uintptr(fd), "reserved port"))
		if err := unix.Bind(fd, sockaddr(netip.AddrPortFrom(local, port))); err != nil {
			return 0, os.NewSyscallError("bind", err)
		}
		own, err := unix.Getsockname(fd)
		if err != nil {
			return 0, os.NewSyscallError("getsockname", err)
		}
		port = addrPortOf(own).Port()
		if kind == unix.SOCK_DGRAM { // it then receives datagrams of its peer only, which is itself
			err = unix.Connect(fd, own)
		}
		if err != nil {
			return 0, os.NewSyscallError("connect", err)
		}
	}
	return port, nil
}

// redirected is a listener to which NAT redirects connections.
type redirected struct{ *net.TCPListener }

// Accept returns the next connection, whose local address is its original destination.
func (l redirected) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		to, err := originalDestination(c)
		if own := l.Addr().(*net.TCPAddr).AddrPort(); err == nil && to != own {
			return &redirectedConn{c, net.TCPAddrFromAddrPort(to)}, nil
		}
		_, _ = c.SetLinger(0), c.Close() // the guest has connected to the listener itself
	}
}

// redirectedConn is a connection to another address than its own.
type redirectedConn struct {
	*net.TCPConn
	to *net.TCPAddr
}

// LocalAddr returns the original destination.
func (c *redirectedConn) LocalAddr() net.Addr { return c.to }

// originalDestination returns the address to which a redirected connection was made.
func originalDestination(c *net.TCPConn) (to netip.AddrPort, err error) {
	level := unix.SOL_IPV6
	if c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Is4() {
		level = unix.SOL_IP
	}
	const original = 80 // SO_ORIGINAL_DST, which is also IP6T_SO_ORIGINAL_DST
	err = kernfile.Control(c, func(fd int) error {
		info, err := unix.GetsockoptIPv6MTUInfo(fd, level, original) // it begins with struct sockaddr_in6, and is longer
		if err != nil {
			return os.NewSyscallError("getsockopt", err)
		}
		a := netip.AddrFrom16(info.Addr.Addr)
		if level == unix.SOL_IP { // where struct sockaddr_in contains the address
			a = netip.AddrFrom4([4]byte(binary.NativeEndian.AppendUint32(nil, info.Addr.Flowinfo)))
		}
		port := binary.NativeEndian.AppendUint16(nil, info.Addr.Port)
		to = netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
		return nil
	})
	return to, err
}

// Listeners returns the listeners for connections to external hosts and to ports of the host. The local address of a connection is
// its destination.
func (g *Gateway) Listeners() []net.Listener {
	var list []net.Listener
	for _, l := range g.Host {
		list = append(list, l)
	}
	if g.TCP != nil {
		return append(list, g.TCP)
	}
	return slices.Concat(list, g.redirected)
}
