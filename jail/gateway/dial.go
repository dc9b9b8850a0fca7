package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxDials bounds the host's connections to the guest's servers that are being opened at
// the same time.
const maxDials = 1024

// Dial connects to a server of the guest on localhost, IPv4 or IPv6.
func (g *Gateway) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	var failed error
	for _, host := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		c, err := g.dial(ctx, netip.AddrPortFrom(host, port))
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (g *Gateway) dial(ctx context.Context, to netip.AddrPort) (c net.Conn, err error) {
	var from uint32 // the source port
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var bindErr error
		err := raw.Control(func(fd uintptr) { from, bindErr = bind(int(fd), to.Addr()) })
		if err := errors.Join(err, bindErr); err != nil {
			return err
		}
		return g.dialed.Put(from, uint8(1))
	}}
	d.SetMultipathTCP(false)
	err = onThread(func() error {
		if err := unix.Setns(int(g.space.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		c, err = d.DialContext(ctx, "tcp", to.String())
		return err
	})
	if from != 0 {
		err = errors.Join(err, g.dialed.Delete(from)) // the connection is open, or will never be
	}
	if err != nil {
		if c != nil {
			_ = c.Close()
		}
		return nil, err
	}
	return c, nil
}

// bind gives a socket a source port of its own.
func bind(fd int, a netip.Addr) (port uint32, err error) {
	var own unix.Sockaddr = &unix.SockaddrInet6{Addr: a.As16()}
	if a.Is4() {
		own = &unix.SockaddrInet4{Addr: a.As4()}
	}
	if err := unix.Bind(fd, own); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	if own, err = unix.Getsockname(fd); err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		return uint32(own.Port), nil
	case *unix.SockaddrInet6:
		return uint32(own.Port), nil
	}
	return 0, unix.EAFNOSUPPORT
}
