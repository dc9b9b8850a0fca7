package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

const localhost = "localhost"

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// isHost reports whether a target is localhost, where only ports of the host lead to the server.
func (t target) isHost() bool { return t.addr == loopback4 || t.addr == loopback6 }

// dialHost connects to a port of the host's localhost that the rules allow. If nothing listens on the
// guest's address there, it tries the other one: many servers listen on one of them.
func dialHost(ctx context.Context, client *Client, t target) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error { return limitBuffers(raw, client.buffer()) }}
	d.SetMultipathTCP(false) // whose sockets cannot be spliced
	other := loopback6
	if t.addr == loopback6 {
		other = loopback4
	}
	var failed error
	for _, a := range []netip.Addr{t.addr, other} {
		c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, t.port).String())
		if err == nil {
			return c, nil
		}
		if failed = errors.Join(failed, err); !errors.Is(err, unix.ECONNREFUSED) {
			break
		}
	}
	return nil, failed
}
