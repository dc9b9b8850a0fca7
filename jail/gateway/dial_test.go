package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"
	"testing"

	"gaol/internal/kernfile"

	"golang.org/x/sys/unix"
)

// While the host waits for a server that accepts nothing, the guest cannot use the host's port
// to reach localhost. Dial ends with its context.
func TestWaitingDial(t *testing.T) {
	for _, server := range []string{"127.0.0.1:80", "[::1]:80"} {
		g, inside := openInJail(t, Config{})
		to := netip.MustParseAddrPort(server)
		fillQueue(t, g, inside, to)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		result := make(chan error)
		go func() {
			c, err := g.Dial(ctx, to, socketBuffer)
			if err == nil {
				c.Close()
			}
			result <- err
		}()
		var key uint32
		for g.dialed.NextKey(nil, &key) != nil {
			goruntime.Gosched()
		}
		checkPort(t, inside, uint16(key))
		cancel(unix.ELIBBAD)
		if err := <-result; err != unix.ELIBBAD {
			t.Errorf("dial %s: %v", server, err)
		}
		if err := g.dialed.NextKey(nil, &key); err == nil {
			t.Errorf("dial %s: key %d is still there", server, key)
		}
	}
}

// checkPort checks that the guest reaches no server from any of its addresses with a port.
func checkPort(t *testing.T, inside func(func() error) error, port uint16) {
	t.Helper()
	listenInside(t, inside, "127.0.0.1:81")
	listenInside(t, inside, "[::1]:81")
	for _, from := range []string{"127.0.0.1", "127.0.0.2", "10.0.2.15", "0.0.0.0", "::1", "fd00::2:15", "::"} {
		own, to := netip.AddrPortFrom(netip.MustParseAddr(from), port), "[::1]:81"
		if own.Addr().Is4() {
			to = "127.0.0.1:81"
		}
		err := inside(func() error {
			d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(own)}
			c, err := d.DialContext(t.Context(), "tcp", to)
			if err == nil {
				c.Close()
			}
			return err
		})
		if !errors.Is(err, unix.EADDRINUSE) && !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("the guest from %s: %v", own, err)
		}
	}
}

// fillQueue starts a server in the namespace whose backlog is full.
func fillQueue(t *testing.T, g *Gateway, inside func(func() error) error, at netip.AddrPort) {
	t.Helper()
	var l net.Listener
	err := inside(func() (err error) {
		l, err = net.Listen("tcp", at.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := kernfile.Control(fileOf(t, l), func(fd int) error { return unix.Listen(fd, 0) }); err != nil { // room for one
		t.Fatal(err)
	}
	c, err := g.Dial(t.Context(), at, socketBuffer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
}

// fileOf returns a copy of a listener's descriptor.
func fileOf(t *testing.T, l net.Listener) *os.File {
	t.Helper()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Without a gateway, too, the host reaches servers.
func TestDialWithoutGateway(t *testing.T) {
	pidfd, inside := startJail(t)
	if err := inside(raiseLoopback); err != nil {
		t.Fatal(err)
	}
	listenInside(t, inside, "127.0.0.1:80")
	c, err := Dial(t.Context(), pidfd, netip.MustParseAddrPort("127.0.0.1:80"), socketBuffer)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "127.0.0.1:80" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Dial(t.Context(), pidfd, netip.MustParseAddrPort("127.0.0.1:81"), socketBuffer); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("nothing listens: %v", err)
	}
}
