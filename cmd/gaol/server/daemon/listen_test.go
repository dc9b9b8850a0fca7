package daemon

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The connections that a TCP listener accepts have its bounds, so that the kernel holds little for a client that does not
// read, or whose data is not read.
func TestBuffersAreBounded(t *testing.T) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := boundBuffers(l); err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		receive, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		if err != nil || receive > 2*socketBuffer { // the kernel doubles it
			t.Errorf("the buffer for receiving has %d bytes, %v", receive, err)
		}
		unsent, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
		if err != nil || unsent != socketBuffer {
			t.Errorf("%d bytes may wait to be sent, %v", unsent, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
