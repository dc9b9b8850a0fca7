package sockdiag

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Listeners lists the servers of users, and no connections.
func TestListeners(t *testing.T) {
	own := func(uid int) bool { return uid == os.Getuid() }
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want := l.Addr().(*net.TCPAddr).AddrPort()
		if list, err := Listeners(want.Port(), own); err != nil || len(list) != 1 || list[0] != want {
			t.Errorf("%v, %v, want %v", list, err, want)
		}
		if list, err := Listeners(0, own); err != nil || !slices.Contains(list, want) {
			t.Errorf("%v, %v", list, err)
		}
		if list, err := Listeners(want.Port(), func(int) bool { return false }); err != nil || len(list) != 0 {
			t.Errorf("of others: %v, %v", list, err)
		}
		client := c.LocalAddr().(*net.TCPAddr).AddrPort()
		if list, err := Listeners(client.Port(), own); err != nil || len(list) != 0 {
			t.Errorf("a connection is a server: %v, %v", list, err)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for _, text := range []string{"", "0100007F", "0100007:0050", "0100007F:10050", "00:0050", "0100007F00:0050"} {
		if a, ok := parseAddress(text); ok {
			t.Errorf("%q is %v", text, a)
		}
	}
}

// Inodes finds one end of a connection, and the sockets of a port of UDP.
func TestInodes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	own, peer := c.LocalAddr().(*net.TCPAddr).AddrPort(), l.Addr().(*net.TCPAddr).AddrPort()
	other := netip.AddrPortFrom(peer.Addr(), 1)
	for _, tc := range []struct {
		network   string
		own, peer netip.AddrPort
		of        syscall.Conn // nil: there is no such socket
	}{
		{"tcp", own, peer, c.(*net.TCPConn)},
		{"tcp", own, other, nil},
		{"udp", p.LocalAddr().(*net.UDPAddr).AddrPort(), other, p},
		{"udp", other, peer, nil},
	} {
		var want []uint64
		if tc.of != nil {
			var info unix.Stat_t
			if err := kernfile.Control(tc.of, func(fd int) error { return unix.Fstat(fd, &info) }); err != nil {
				t.Fatal(err)
			}
			want = append(want, info.Ino)
		}
		if got, err := Inodes(tc.network, tc.own, tc.peer); !slices.Equal(got, want) || err != nil {
			t.Errorf("%s %v: %v, %v, want %v", tc.network, tc.own, got, err, want)
		}
	}
}

func TestParseLine(t *testing.T) {
	for _, text := range []string{"", "0: 0100007F:0050 00000000:0000", "0: 0100007F:0050 00000000:0000 X 0:0 0:0 0 0 0 5", "0: 0100007F:0050 00000000:0000 0A 0:0 0:0 0 0 0 x"} {
		if l, ok := parseLine(strings.Fields(text)); ok {
			t.Errorf("%q is %+v", text, l)
		}
	}
}
