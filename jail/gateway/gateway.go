package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// Addresses in the namespace. 10.0.2.0/24 is what user-mode networks usually have.
var (
	Resolver = netip.AddrFrom4([4]byte{10, 0, 2, 3})

	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

	guestV4 = netip.AddrFrom4([4]byte{10, 0, 2, 15})
	guestV6 = netip.MustParseAddr("fd00::2:15") // resolvers ask for IPv6 only with such an address
)

// Guest are the addresses of the guest's programs, apart from localhost.
func Guest() []netip.Addr { return []netip.Addr{guestV4, guestV6} }

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
	TCP    *net.TCPListener // every connection that leaves the guest
	DNS    *net.UDPConn     // questions to Resolver
	DNSTCP *net.TCPListener
	Host   []*net.TCPListener // two for each port in Config.Host

	space   *os.File // the network namespace
	objects []interface{ Close() error }
	dialed  *ebpf.Map // keys for the source ports of the host's own connections
	diag    *diag
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
	err := onThread(func() (err error) {
		if err := unix.Setns(int(of.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		if g.space, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())); err != nil {
			return err
		}
		if err := errors.Join(addRoutes(), limitBuffers()); err != nil {
			return err
		}
		if g.diag, err = openDiag(); err != nil {
			return err
		}
		return errors.Join(g.listen(), g.listenHost(c.Host))
	})
	if err != nil {
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
	resolver := netip.AddrPortFrom(Resolver, 53)
	if g.TCP, err = listenTCP("[::]:0"); err != nil {
		return err
	}
	if g.DNSTCP, err = listenTCP(resolver.String()); err != nil {
		return err
	}
	g.DNS, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(resolver))
	return err
}

// listenHost opens the sockets of the host's ports, in the thread's namespace. No guest has been started
// that could have these ports.
func (g *Gateway) listenHost(ports []uint16) error {
	for _, port := range ports {
		for _, a := range []netip.Addr{loopback4, netip.IPv6Loopback()} {
			l, err := listenTCP(netip.AddrPortFrom(a, port).String())
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
func listenTCP(address string) (*net.TCPListener, error) {
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
	return l.(*net.TCPListener), nil
}

// attach loads the program and attaches it to the namespace.
func (g *Gateway) attach(c Config) error {
	listener, err := ebpf.NewMap(&ebpf.MapSpec{Name: "gaol_listener", Type: ebpf.SockMap, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return bpfError("map", err)
	}
	g.objects = append(g.objects, listener)
	g.dialed, err = ebpf.NewMap(&ebpf.MapSpec{Name: "gaol_dialed", Type: ebpf.Hash, KeySize: 4, ValueSize: 1, MaxEntries: maxDials})
	if err != nil {
		return bpfError("map", err)
	}
	g.objects = append(g.objects, g.dialed)
	if err := putSocket(listener, g.TCP); err != nil {
		return bpfError("map", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "gaol_gateway", Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup, License: "MIT",
		Instructions: lookup(c, listener.FD(), g.dialed.FD()),
	})
	if err != nil {
		return bpfError("program", err)
	}
	g.objects = append(g.objects, program)
	attached, err := link.AttachNetNs(int(g.space.Fd()), program)
	if err != nil {
		return bpfError("link", err)
	}
	g.objects = append(g.objects, attached)
	return nil
}

// bpfError names the cure.
func bpfError(object string, err error) error {
	return fmt.Errorf("BPF %s: %w (it needs Linux 5.9 with CONFIG_BPF_SYSCALL, and CAP_BPF or root)", object, err)
}

func putSocket(m *ebpf.Map, l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var putErr error
	err = raw.Control(func(fd uintptr) { putErr = m.Put(uint32(0), uint64(fd)) })
	return errors.Join(err, putErr)
}

// Close closes the sockets and detaches the BPF program. Accepted connections stay open.
func (g *Gateway) Close() error {
	var failed error
	if g.TCP != nil {
		failed = errors.Join(failed, g.TCP.Close())
	}
	for _, l := range g.Host {
		failed = errors.Join(failed, l.Close())
	}
	if g.DNSTCP != nil {
		failed = errors.Join(failed, g.DNSTCP.Close())
	}
	if g.DNS != nil {
		failed = errors.Join(failed, g.DNS.Close())
	}
	for i := len(g.objects) - 1; i >= 0; i-- {
		failed = errors.Join(failed, g.objects[i].Close())
	}
	g.space.Close() // may be nil
	return errors.Join(failed, g.diag.close())
}

// onThread calls f on a thread that ends afterwards, because it may be in another
// namespace then.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with the goroutine
		result <- f()
	}()
	return <-result
}

// Probe opens and closes a gateway in a new network namespace.
func Probe() error {
	var space *os.File
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		space, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
	if err != nil {
		return err
	}
	defer space.Close()
	g, err := Open(space, Config{})
	if err != nil {
		return err
	}
	return errors.Join(g.probeOwner(), features.HaveProgramType(ebpf.CGroupSKB), g.Close())
}

// probeOwner connects to the listener as a guest would, and asks for the cgroup.
func (g *Gateway) probeOwner() error {
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{93, 184, 215, 14}), 443) // any address leads to the listener
	return onThread(func() error {
		if err := unix.Setns(int(g.space.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
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
