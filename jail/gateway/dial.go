package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
	"gaol/jail/sockdiag"
)

// maxDials bounds the host's connections to the guest's servers that are being opened at
// the same time.
const maxDials = 1024

// dialed6 is set in keys of Gateway.dialed for ports of ::1, and not for ports of 127.0.0.1.
const dialed6 = 1 << 16

// Dial connects to 127.0.0.1 or ::1 in the network namespace that a pidfd's process is in, or
// that a file of /proc/PID/ns names. Buffer is the size of each of the
// socket's buffers, in bytes; the kernel doubles it, and charges no cgroup of the guest for them. Use
// [Gateway.Dial] in the namespace of a gateway.
func Dial(ctx context.Context, of *os.File, to netip.AddrPort, buffer int) (*net.TCPConn, error) {
	s, err := openSocket(of, to, buffer)
	if err != nil {
		return nil, err
	}
	defer s.Close() // net.FileConn duplicates the descriptor
	return connect(ctx, s, to)
}

// Dial connects to 127.0.0.1 or ::1, whichever ports the guest itself may connect to. At most
// 1,024 dials can be pending.
func (g *Gateway) Dial(ctx context.Context, to netip.AddrPort, buffer int) (*net.TCPConn, error) {
	s, err := openSocket(g.space, to, buffer)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	key, err := bind(s, to.Addr())
	if err != nil {
		return nil, err
	}
	if err := g.dialed.Put(key, uint8(1)); err != nil {
		return nil, fmt.Errorf("BPF map for %d dials: %w", maxDials, err)
	}
	c, err := connect(ctx, s, to)
	// The handshake is over, so the key is not needed any more. The open socket still reserves the port:
	// no other dial can have added the same key.
	if failed := g.dialed.Delete(key); failed != nil && err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("BPF map of dials: %w", failed)
	}
	return c, err
}

// openSocket opens a TCP socket in a network namespace. It belongs to it for good, so that
// connecting needs no thread there.
func openSocket(of *os.File, to netip.AddrPort, buffer int) (*os.File, error) {
	family := unix.AF_INET6
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	var fd int
	err := kernfile.InNetwork(of, func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return os.NewSyscallError("socket", err)
	})
	if err != nil {
		return nil, err
	}
	s := os.NewFile(uintptr(fd), "connection to a server of the guest")
	if err := setBuffers(fd, buffer); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// bind binds a socket to an unused port of an address, and returns its key of Gateway.dialed.
func bind(s *os.File, a netip.Addr) (key uint32, err error) {
	err = kernfile.Control(s, func(fd int) error {
		if err := unix.Bind(fd, sockaddr(netip.AddrPortFrom(a, 0))); err != nil {
			return os.NewSyscallError("bind", err)
		}
		own, err := unix.Getsockname(fd)
		switch own := own.(type) {
		case *unix.SockaddrInet4:
			key = uint32(own.Port)
		case *unix.SockaddrInet6:
			key = uint32(own.Port) | dialed6
		}
		return os.NewSyscallError("getsockname", err)
	})
	return key, err
}

// connect connects a socket. A guest that accepts no connections lets it wait until ctx ends.
func connect(ctx context.Context, s *os.File, to netip.AddrPort) (*net.TCPConn, error) {
	err := Start(s, sockaddr(to))
	if errors.Is(err, unix.EINPROGRESS) {
		err = Wait(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	c, err := net.FileConn(s)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// Start begins to connect a non-blocking socket. The error is EINPROGRESS if the result is left to [Wait].
func Start(s *os.File, to unix.Sockaddr) error {
	return os.NewSyscallError("connect", kernfile.Control(s, func(fd int) error { return unix.Connect(fd, to) }))
}

// Wait waits until a socket is connected. If ctx ends first, the error is its cause, and the socket still
// connects.
func Wait(ctx context.Context, s *os.File) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	if err := s.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.SetWriteDeadline(time.Unix(1, 0)) })() // fails if s is closed
	var failed error
	waited := raw.Write(func(fd uintptr) bool {
		failed = connected(int(fd))
		return failed != unix.EINPROGRESS
	})
	switch {
	case waited != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case waited != nil:
		return waited
	}
	return os.NewSyscallError("connect", failed)
}

// connected returns the result of a connect, or EINPROGRESS.
func connected(fd int) error {
	failed, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if failed != 0 {
		return unix.Errno(failed)
	}
	if _, err = unix.Getpeername(fd); err == unix.ENOTCONN {
		return unix.EINPROGRESS
	}
	return err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// ErrNoOwner is the error of [Gateway.Owner] for a socket that is gone, or that several
// processes could have used.
var ErrNoOwner = errors.New("no socket of the guest, or several")

// Owner returns the id of the v2 cgroup in which the guest has made the socket at its end of a
// connection, or of a datagram. Network is tcp or udp, and to is where the guest sent it.
func (g *Gateway) Owner(network string, guest, to netip.AddrPort) (cgroup uint64, err error) {
	g.asking.Lock()
	defer g.asking.Unlock()
	owners := map[uint64]struct{}{}
	add := func(s sockdiag.Socket) {
		if cgroup = 0; len(s.Attribute(sockdiag.Cgroup, 8)) > 0 {
			cgroup = binary.NativeEndian.Uint64(s.Attribute(sockdiag.Cgroup, 8))
		}
		owners[cgroup] = struct{}{}
	}
	if network == "udp" {
		// Several sockets can share the port, and which of them has sent a datagram is unknown.
		err = sockdiag.Query{Protocol: unix.IPPROTO_UDP, Port: guest.Port()}.Each(g.diag, add)
	} else {
		var s sockdiag.Socket
		if s, err = sockdiag.Connection(g.diag, guest, to); err == nil {
			add(s)
		}
	}
	if errors.Is(err, os.ErrNotExist) || err == nil && (len(owners) != 1 || cgroup == 0) {
		err = ErrNoOwner
	}
	return cgroup, err
}
