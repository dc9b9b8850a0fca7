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

// openRedirected opens the gateway on kernels without socket look-ups, by NAT: all connections lead to one listener for each family,
// which asks the kernel for the original destination. The kernel does not report that of datagrams, so that only the resolver gets any.
//
// Preconditions: the thread is in the network namespace, whose lo is up, and in which no guest has been started.
func (g *Gateway) openRedirected(c Config) error {
	for _, a := range []netip.Addr{guestV4, guestV6, Resolver} {
		if err := addAddress(a); err != nil {
			return fmt.Errorf("add address %s to lo: %w", a, err)
		}
	}
	for _, f := range []struct {
		family    int
		local     netip.Addr
		localhost netip.Prefix
	}{
		{unix.AF_INET, loopback4, netip.PrefixFrom(loopback4, 8).Masked()},
		{unix.AF_INET6, netip.IPv6Loopback(), netip.PrefixFrom(netip.IPv6Loopback(), 128)},
	} {
		if err := routeToLoopback(f.family); err != nil {
			return fmt.Errorf("route all addresses to lo: %w", err)
		}
		l, err := g.listenTCP(netip.AddrPortFrom(f.local, 0).String())
		if err != nil {
			return err
		}
		g.redirected = append(g.redirected, redirected{l})
		closed, err := g.reservePort(f.local)
		if err != nil {
			return err
		}
		if err := setNAT(f.family, c.natRules(f.local, f.localhost, uint16(l.Addr().(*net.TCPAddr).Port), closed)); err != nil {
			return fmt.Errorf("replace table nat: %w", err)
		}
	}
	return errors.Join(g.listenResolver(), g.listenHost(c.Host))
}

// natRules returns the rules of one family. Port is that of the listener, and closed one that refuses traffic.
func (c Config) natRules(local netip.Addr, localhost netip.Prefix, port, closed uint16) []natRule {
	all := PortRange{0, 1<<16 - 1}
	rules := []natRule{{host: true}}
	if local.Is4() {
		resolver := netip.PrefixFrom(Resolver, Resolver.BitLen())
		for _, protocol := range []uint16{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			rules = append(rules,
				natRule{to: resolver, protocol: protocol, ports: PortRange{53, 53}},
				natRule{to: resolver, protocol: protocol, ports: all, port: closed})
		}
	}
	for _, p := range c.Host {
		rules = append(rules, natRule{to: netip.PrefixFrom(local, local.BitLen()), protocol: unix.IPPROTO_TCP, ports: PortRange{p, p}})
	}
	for _, p := range c.TCP {
		rules = append(rules, natRule{to: localhost, protocol: unix.IPPROTO_TCP, ports: p})
	}
	if c.UDP {
		rules = append(rules, natRule{to: localhost, protocol: unix.IPPROTO_UDP, ports: all})
	}
	return append(rules,
		natRule{to: localhost, protocol: unix.IPPROTO_TCP, ports: all, port: closed},
		natRule{protocol: unix.IPPROTO_TCP, ports: all, port: port},
		natRule{protocol: unix.IPPROTO_UDP, ports: all, port: closed})
}

// routeToLoopback routes all addresses of a family to lo. There are no local routes to prefixes in gVisor.
func routeToLoopback(family int) error {
	all := nl.NewRtMsg()
	all.Family, all.Table, all.Scope, all.Type = uint8(family), unix.RT_TABLE_MAIN, unix.RT_SCOPE_HOST, unix.RTN_UNICAST //nolint:gosec // a byte
	size := net.IPv4len
	if family == unix.AF_INET6 {
		size = net.IPv6len
	}
	return change(unix.RTM_NEWROUTE, all, nl.NewRtAttr(unix.RTA_DST, make([]byte, size)), nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(loopback)))
}

// reservePort returns a port that refuses connections and datagrams, and that guests cannot use.
func (g *Gateway) reservePort(local netip.Addr) (port uint16, err error) {
	at := netip.AddrPortFrom(local, 0)
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		family := unix.AF_INET6
		if local.Is4() {
			family = unix.AF_INET
		}
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, os.NewSyscallError("socket", err)
		}
		s := os.NewFile(uintptr(fd), "reserved port")
		g.owned = append(g.owned, s)
		if err := unix.Bind(fd, sockaddr(at)); err != nil {
			return 0, os.NewSyscallError("bind", err)
		}
		if kind == unix.SOCK_DGRAM { // it receives datagrams of the peer only: itself
			return at.Port(), os.NewSyscallError("connect", unix.Connect(fd, sockaddr(at)))
		}
		own, err := unix.Getsockname(fd)
		if err != nil {
			return 0, os.NewSyscallError("getsockname", err)
		}
		at = addrPortOf(own)
	}
	return at.Port(), nil
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
		if level == unix.SOL_IP { // struct sockaddr_in has the address at this place
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
