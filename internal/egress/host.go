package egress

import "net/netip"

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
