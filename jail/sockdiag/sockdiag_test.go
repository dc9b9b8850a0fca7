package sockdiag

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func netlink(t *testing.T) *nl.SocketHandle {
	t.Helper()
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func addrPort(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

func TestSockets(t *testing.T) {
	f := netlink(t)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		own := addrPort(l.Addr())
		q := Query{Protocol: unix.IPPROTO_TCP, States: 1 << unix.BPF_TCP_LISTEN, Port: own.Port(), Memory: true}
		n := 0
		err = q.Each(f, func(s Socket) {
			n++
			uid, owned := s.UID()
			if s.Own() != own || s.State() != unix.BPF_TCP_LISTEN || s.Attribute(Memory, 36) == nil || int(uid) != os.Geteuid() || !owned {
				t.Errorf("%s: found %+v", own, s)
			}
		})
		if n != 1 || err != nil {
			t.Errorf("%s: %d sockets, %v", own, n, err)
		}
		c, err := net.Dial("tcp", own.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := Connection(f, addrPort(c.LocalAddr()), own)
		if err != nil || s.Own() != addrPort(c.LocalAddr()) || s.Peer() != own || binary.NativeEndian.Uint64(append(s.Attribute(Cgroup, 8), make([]byte, 8)...)) == 0 {
			t.Errorf("%s: connection %+v, %v", own, s, err)
		}
		// The listening socket is not a connection.
		if _, err := Connection(f, own, netip.AddrPortFrom(own.Addr(), 1)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: no connection: %v", own, err)
		}
	}
}

func TestAttribute(t *testing.T) {
	attribute := func(kind byte, value ...byte) []byte {
		return append([]byte{byte(4 + len(value)), 0, kind, 0}, value...)
	}
	for _, tc := range []struct {
		text []byte
		want string
	}{
		{nil, ""},
		{attribute(Cgroup, 1, 2, 3, 4), "\x01\x02\x03\x04"},
		{slices.Concat(attribute(3, 9), []byte{0, 0, 0}, attribute(Cgroup, 1, 2, 3, 4)), "\x01\x02\x03\x04"},
		{attribute(Cgroup, 1, 2, 3), ""},
		{attribute(Cgroup, 1, 2, 3, 4)[:7], ""},
		{[]byte{0, 0, Cgroup, 0}, ""},
		{[]byte{3, 0, Cgroup, 0}, ""},
		{[]byte{255, 255, Cgroup, 0, 1, 2, 3, 4}, ""},
	} {
		if got := (Socket{attributes: tc.text}).Attribute(Cgroup, 4); string(got) != tc.want {
			t.Errorf("%v: got %v", tc.text, got)
		}
	}
}

func TestParse(t *testing.T) {
	const messageLen = 72 // struct inet_diag_msg
	for size, want := range map[int]bool{0: false, messageLen - 4: false, messageLen: true, messageLen + 40: true} {
		if s, ok := Parse(make([]byte, size)); ok != want || ok && len(s.attributes) != size-messageLen {
			t.Errorf("%d bytes: %t", size, ok)
		}
	}
}

func TestZeroSocket(t *testing.T) {
	var s Socket
	_, owned := s.UID()
	if s.Own() != s.Peer() || s.Own().Port() != 0 || s.State() != 0 || owned || s.ReceiveQueue()+s.SendQueue()+s.BytesAcked()+s.BytesReceived() != 0 || s.Attribute(Memory, 0) != nil {
		t.Errorf("%+v", s)
	}
}

func BenchmarkParse(b *testing.B) {
	message := make([]byte, 200)
	for b.Loop() {
		Parse(message)
	}
}
