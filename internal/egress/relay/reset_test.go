package relay

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestResetAtOnce takes over a connection that the guest has reset: it has no address any more.
func TestResetAtOnce(t *testing.T) {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 1); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(l)
	if err != nil {
		t.Fatal(err)
	}
	guest, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.(*unix.SockaddrInet4).Port})
	if err != nil {
		t.Fatal(err)
	}
	if err := guest.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := tcpConn(fd); err == nil {
		t.Errorf("a connection from %v", c.RemoteAddr())
		c.Close()
	}
	if a := AddrPort(nil); a.IsValid() {
		t.Error("no address is", a)
	}
}
