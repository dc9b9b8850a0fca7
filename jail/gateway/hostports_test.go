package gateway

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The host's listeners have the ports of 127.0.0.1 and ::1, and other addresses of localhost lead
// nowhere on these ports.
func TestHostPorts(t *testing.T) {
	g, inside := openInJail(t, Config{TCP: []PortRange{{1, 2999}, {3001, 65535}}, Host: []uint16{3000, 8080}})
	if len(g.Host) != 4 {
		t.Fatalf("%d listeners", len(g.Host))
	}
	for address, listener := range map[string]int{"127.0.0.1:3000": 0, "0.0.0.0:3000": 0, "[::ffff:127.0.0.1]:3000": 0, "[::1]:3000": 1, "127.0.0.1:8080": 2, "[::1]:8080": 3} {
		if _, err := dialFrom(t, inside, "tcp", address); err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		c, err := g.Host[listener].Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.LocalAddr().String(), g.Host[listener].Addr().String(); got != want {
			t.Errorf("%s: accepted as %s, want %s", address, got, want)
		}
		c.Close()
	}
	for _, address := range []string{"127.0.0.2:3000", "127.255.255.254:8080"} {
		listenInside(t, inside, address)
		if _, err := dialFrom(t, inside, "tcp", address); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A guest cannot take a port of the host, whatever options its socket has.
func TestHostPortsAreTaken(t *testing.T) {
	_, inside := openInJail(t, Config{Host: []uint16{3000}})
	reuse := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
		})
		return errors.Join(err, failed)
	}}
	for _, address := range []string{"127.0.0.1:3000", "0.0.0.0:3000", "[::1]:3000", "[::]:3000", ":3000"} {
		for _, c := range []net.ListenConfig{{}, reuse} {
			err := inside(func() error {
				l, err := c.Listen(context.Background(), "tcp", address)
				if err == nil {
					_ = l.Close()
				}
				return err
			})
			if !errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	err := inside(func() error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3000}, Control: reuse.Control}
		_, err := d.Dial("tcp", "127.0.0.1:4000")
		return err
	})
	if !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a client with the port: %v", err)
	}
}
