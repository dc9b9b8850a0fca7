package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"gaol/internal/kernfile"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(dialEnv) != "" {
		if err := dialAndWait(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// startJail starts a process that sleeps in a new network namespace.
func startJail(t *testing.T) (pidfd *os.File, inside func(func() error) error) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET} // no Pdeathsig: this thread may end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd = os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() { pidfd.Close() })
	return pidfd, func(f func() error) error {
		return kernfile.InNetwork(pidfd, f)
	}
}

// openInJail opens a gateway in the namespace of such a process.
func openInJail(t *testing.T, c Config) (g *Gateway, inside func(func() error) error) {
	t.Helper()
	pidfd, inside := startJail(t)
	g, err := Open(pidfd, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, inside
}

// dialFrom connects in the namespace.
func dialFrom(t *testing.T, inside func(func() error) error, network, address string) (c net.Conn, err error) {
	t.Helper()
	err = inside(func() error {
		d := net.Dialer{Timeout: 10 * time.Second}
		c, err = d.DialContext(t.Context(), network, address)
		return err
	})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestEveryAddressReachesTheListener(t *testing.T) {
	g, inside := openInJail(t, Config{})
	for _, address := range []string{"93.184.215.14:443", "8.8.8.8:1", "10.0.2.15:65535", "10.0.2.2:80", "169.254.169.254:80", "[2606:2800::1]:443", "[fd00::2:15]:80", "255.255.255.254:9"} {
		if _, err := dialFrom(t, inside, "tcp", address); err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		c, err := g.TCP.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := c.LocalAddr().(*net.TCPAddr).AddrPort()
		if got := netip.AddrPortFrom(got.Addr().Unmap(), got.Port()); got.String() != address {
			t.Errorf("%s: accepted as %s", address, got)
		}
		c.Close()
	}
}

// listenInside starts a server in the namespace that sends its name.
func listenInside(t *testing.T, inside func(func() error) error, address string) {
	t.Helper()
	var l net.Listener
	err := inside(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, address)
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
}

func TestPortsOfLocalhost(t *testing.T) {
	g, inside := openInJail(t, Config{TCP: []PortRange{{80, 80}, {3000, 3999}, {65535, 65535}}})
	allowed := map[string]bool{"127.0.0.1:80": true, "127.9.9.9:3000": true, "[::1]:3999": true, "127.0.0.1:65535": true,
		"127.0.0.1:79": false, "127.0.0.1:81": false, "[::1]:4000": false, "127.0.0.1:2999": false, "[::1]:65534": false}
	for address, ok := range allowed {
		listenInside(t, inside, address)
		_, err := dialFrom(t, inside, "tcp", address)
		if (err == nil) != ok || !ok && !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:80", "127.0.0.1:81", "[::1]:4000"} { // the host reaches all
		c, err := g.Dial(t.Context(), netip.MustParseAddrPort(address), socketBuffer)
		if err != nil {
			t.Errorf("dial %s: %v", address, err)
			continue
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != address {
			t.Errorf("dial %s: %q, %v", address, b, err)
		}
		c.Close()
	}
	for _, address := range []string{"127.0.0.1:5", "[::1]:80"} {
		if _, err := g.Dial(t.Context(), netip.MustParseAddrPort(address), socketBuffer); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("nothing listens on %s: %v", address, err)
		}
	}
	var key uint32
	if err := g.dialed.NextKey(nil, &key); err == nil {
		t.Errorf("port %d is still allowed", key)
	}
}

func TestResolver(t *testing.T) {
	g, inside := openInJail(t, Config{})
	var answering sync.WaitGroup
	answering.Go(func() {
		b := make([]byte, 512)
		for {
			n, from, err := g.DNS.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = g.DNS.WriteToUDPAddrPort(b[:n], from)
		}
	})
	defer answering.Wait()
	defer func() { _ = g.DNS.SetReadDeadline(time.Unix(1, 0)) }()
	c, err := dialFrom(t, inside, "udp", "10.0.2.3:53")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 512)
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = c.Write([]byte("question"))
	if n, err := c.Read(b); err != nil || string(b[:n]) != "question" {
		t.Errorf("connected socket: %q, %v", b[:n], err)
	}
	var p net.PacketConn
	if err := inside(func() error { p, err = net.ListenPacket("udp4", "0.0.0.0:0"); return err }); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_ = p.SetDeadline(time.Now().Add(time.Minute))
	_, _ = p.WriteTo([]byte("question"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(Resolver, 53)))
	if n, from, err := p.ReadFrom(b); err != nil || string(b[:n]) != "question" || from.String() != "10.0.2.3:53" {
		t.Errorf("unconnected socket: %q from %v, %v", b[:n], from, err)
	}
	if _, err := dialFrom(t, inside, "tcp", "10.0.2.3:53"); err != nil {
		t.Errorf("TCP: %v", err)
	}
	if _, err := dialFrom(t, inside, "tcp", "10.0.2.3:54"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("another port: %v", err)
	}
}

// Datagrams leave the guest only for the resolver.
func TestDatagrams(t *testing.T) {
	for _, udp := range []bool{false, true} {
		_, inside := openInJail(t, Config{UDP: udp})
		for address, ok := range map[string]bool{"127.0.0.1:500": udp, "[::1]:500": udp, "93.184.215.14:500": false, "10.0.2.15:500": false, "[2606:2800::1]:500": false} {
			var server net.PacketConn
			err := inside(func() (err error) {
				server, err = net.ListenPacket("udp", ":500")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			c, err := dialFrom(t, inside, "udp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write([]byte("x"))
			wait := time.Minute
			if ok {
				wait = 50 * time.Millisecond
			}
			_ = c.SetReadDeadline(time.Now().Add(wait))
			_, err = c.Read(make([]byte, 1)) // a refusal arrives without delay
			if refused := errors.Is(err, unix.ECONNREFUSED); refused == ok {
				t.Errorf("%s with UDP %t: %v", address, udp, err)
			}
			server.Close()
		}
	}
}

func TestProbe(t *testing.T) {
	before := openFiles(t)
	if err := Probe(); err != nil {
		t.Error(err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
