package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/kernel"
	"gaol/jail/sockdiag"
)

// Addresses in the namespace. 10.0.2.0/24 is what user-mode networks usually have.
var (
	Resolver = netip.AddrFrom4([4]byte{10, 0, 2, 3})

	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

	guestV4 = netip.AddrFrom4([4]byte{10, 0, 2, 15})
	guestV6 = netip.MustParseAddr("fd00::2:15") // resolvers ask for IPv6 only with such an address
)

// PortRange is the ports from First to Last.
type PortRange struct{ First, Last uint16 }

// Config is the permitted traffic to localhost.
type Config struct {
	TCP []PortRange // TCP to these ports
	UDP bool        // datagrams to any port

	// Host are ports of 127.0.0.1 and ::1 on which the host listens instead of the guest. None is
	// in TCP.
	Host []uint16
}

// Gateway owns the host's sockets in the namespace.
type Gateway struct {
	TCP    *net.TCPListener // every connection that leaves the guest; nil on kernels without socket look-ups, see Listeners
	DNS    *net.UDPConn     // questions to Resolver
	DNSTCP *net.TCPListener
	Host   []*net.TCPListener // two for each port in Config.Host

	space  *os.File    // the network namespace
	owned  []io.Closer // all sockets and BPF objects, in the order in which they were opened
	dialed *ebpf.Map   // keys for the source ports of the host's own connections; nil without socket look-ups

	redirected []net.Listener // instead of TCP, one for each address family

	asking sync.Mutex       // held for one question to diag
	diag   *nl.SocketHandle // a netlink socket of sock_diag in the namespace
}

// Open opens a gateway in the network namespace that a pidfd's process is in, or that a file
// of /proc/PID/ns names.
func Open(of *os.File, c Config) (*Gateway, error) {
	g := &Gateway{}
	if err := g.open(of, c); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Gateway) open(of *os.File, c Config) error {
	redirects := kernel.Probe().Lacks(kernel.SocketLookup)
	err := kernfile.InNetwork(of, func() (err error) {
		if g.space, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())); err != nil {
			return err
		}
		if redirects {
			return g.openRedirected(c)
		}
		if err := errors.Join(addRoutes(), limitBuffers()); err != nil {
			return err
		}
		if g.diag, err = sockdiag.Open(); err != nil {
			return err
		}
		return errors.Join(g.listen(), g.listenHost(c.Host))
	})
	if err != nil || redirects {
		return err
	}
	return g.attach(c)
}

// limitBuffers bounds the buffers of the guest's own sockets, which are charged to it: the
// kernel's maximum is 6 MB for each connection that the guest does not read, and a run has
// 256 MiB by default.
func limitBuffers() error {
	for _, file := range []string{"tcp_rmem", "tcp_wmem"} {
		// The minimum, the default, and the maximum, in bytes.
		if err := kernfile.WriteFile("/proc/sys/net/ipv4/"+file, "4096 131072 524288"); err != nil {
			return fmt.Errorf("limit the buffers of sockets: %w", err)
		}
	}
	return nil
}

// listen opens the sockets, in the thread's namespace.
func (g *Gateway) listen() (err error) {
	if g.TCP, err = g.listenTCP("[::]:0"); err != nil {
		return err
	}
	return g.listenResolver()
}

// listenResolver opens the sockets of the resolver, in the thread's namespace.
func (g *Gateway) listenResolver() (err error) {
	resolver := netip.AddrPortFrom(Resolver, 53)
	if g.DNSTCP, err = g.listenTCP(resolver.String()); err != nil {
		return err
	}
	if g.DNS, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(resolver)); err == nil {
		g.owned = append(g.owned, g.DNS)
	}
	return err
}

// listenHost opens the sockets of the host's ports, in the thread's namespace. No guest has been started
// that could have these ports.
func (g *Gateway) listenHost(ports []uint16) error {
	for _, port := range ports {
		for _, a := range []netip.Addr{loopback4, netip.IPv6Loopback()} {
			l, err := g.listenTCP(netip.AddrPortFrom(a, port).String())
			if err != nil {
				return err
			}
			g.Host = append(g.Host, l)
		}
	}
	return nil
}

// socketBuffer is the size of the buffers of the host's connections, in bytes; the kernel
// doubles it. They are charged to the host, and a guest can fill them. On loopback larger
// ones are not faster.
const socketBuffer = 128 << 10

func setBuffers(fd, size int) error {
	return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size))
}

// listenTCP listens without MPTCP, whose sockets neither BPF nor splice(2) accepts.
func (g *Gateway) listenTCP(address string) (*net.TCPListener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = setBuffers(int(fd), socketBuffer) })
		return errors.Join(err, set)
	}}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	g.owned = append(g.owned, l)
	return l.(*net.TCPListener), nil
}

// attach loads the program and attaches it to the namespace.
func (g *Gateway) attach(c Config) error {
	listener, err := ebpf.NewMap(&ebpf.MapSpec{Name: "gaol_listener", Type: ebpf.SockMap, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return bpfError("map", err)
	}
	g.owned = append(g.owned, listener)
	g.dialed, err = ebpf.NewMap(&ebpf.MapSpec{Name: "gaol_dialed", Type: ebpf.Hash, KeySize: 4, ValueSize: 1, MaxEntries: maxDials})
	if err != nil {
		return bpfError("map", err)
	}
	g.owned = append(g.owned, g.dialed)
	if err := kernfile.Control(g.TCP, func(fd int) error { return listener.Put(uint32(0), uint64(fd)) }); err != nil {
		return bpfError("map", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "gaol_gateway", Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup, License: "MIT",
		Instructions: lookup(c, listener.FD(), g.dialed.FD()),
	})
	if err != nil {
		return bpfError("program", err)
	}
	g.owned = append(g.owned, program)
	attached, err := link.AttachNetNs(int(g.space.Fd()), program)
	if err != nil {
		return bpfError("link", err)
	}
	g.owned = append(g.owned, attached)
	return nil
}

// bpfError names the cure.
func bpfError(object string, err error) error {
	return fmt.Errorf("BPF %s: %w (it needs Linux 5.9 with CONFIG_BPF_SYSCALL, and CAP_BPF or root)", object, err)
}

// Close detaches the BPF program and closes the sockets. Accepted connections stay open.
func (g *Gateway) Close() error {
	var failed error
	for _, c := range slices.Backward(g.owned) {
		failed = errors.Join(failed, c.Close())
	}
	g.space.Close() // may be nil
	g.asking.Lock()
	defer g.asking.Unlock()
	if g.diag != nil {
		g.diag.Close()
	}
	return failed
}

// OpenNew opens a gateway in a new network namespace, into which only [Gateway.DialFrom] connects.
func OpenNew(c Config) (*Gateway, error) {
	var space *os.File
	err := kernfile.OnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		space, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer space.Close()
	return Open(space, c)
}

// Probe opens and closes a gateway in a new network namespace. The error is for kernels without socket look-ups, too.
func Probe() error {
	if kernel.Probe().Lacks(kernel.SocketLookup) {
		return bpfError("program", errors.ErrUnsupported)
	}
	g, err := OpenNew(Config{})
	if err != nil {
		return err
	}
	return errors.Join(g.probeOwner(), features.HaveProgramType(ebpf.CGroupSKB), g.Close())
}

// probeOwner connects to the listener as a guest would, and asks for the cgroup.
func (g *Gateway) probeOwner() error {
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{93, 184, 215, 14}), 443) // any address leads to the listener
	return kernfile.InNetwork(g.space, func() error {
		c, err := net.DialTimeout("tcp", to.String(), time.Second)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if _, err = g.Owner("tcp", c.LocalAddr().(*net.TCPAddr).AddrPort(), to); err != nil {
			return fmt.Errorf("the kernel does not report the cgroup of a socket: %w", err)
		}
		return nil
	})
}

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
	if g.dialed == nil { // NAT excepts the host's connections
		return Dial(ctx, g.space, to, buffer)
	}
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

// DialFrom connects to any address as a guest with an address would, which need not be one of the namespace's.
func (g *Gateway) DialFrom(ctx context.Context, from, to netip.AddrPort) (*net.TCPConn, error) {
	s, err := openSocket(g.space, to, socketBuffer)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	err = kernfile.Control(s, func(fd int) error {
		level, option := unix.SOL_IP, unix.IP_FREEBIND
		if to.Addr().Is6() {
			level, option = unix.SOL_IPV6, unix.IPV6_FREEBIND
		}
		err := errors.Join(unix.SetsockoptInt(fd, level, option, 1), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		if err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		return os.NewSyscallError("bind", unix.Bind(fd, sockaddr(from)))
	})
	if err != nil {
		return nil, err
	}
	return connect(ctx, s, to)
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
		if key = uint32(addrPortOf(own).Port()); a.Is6() {
			key |= dialed6
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
	tcp, _ := c.(*net.TCPConn)
	return tcp, err
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

// addrPortOf returns the address of TCP or UDP, or zero.
func addrPortOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// ErrNoOwner is the error of [Gateway.Owner] for a socket that is gone, or that several
// processes could have used.
var ErrNoOwner = errors.New("no socket of the guest, or several")

// Owner returns the id of the v2 cgroup in which the guest has made the socket at its end of a
// connection, or of a datagram. Network is tcp or udp, and to is where the guest sent it.
func (g *Gateway) Owner(network string, guest, to netip.AddrPort) (cgroup uint64, err error) {
	g.asking.Lock()
	defer g.asking.Unlock()
	if g.diag == nil {
		return ownerByFiles(network, guest, to)
	}
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
