package jail

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/sockdiag"
)

func TestLockOwner(t *testing.T) {
	for line, want := range map[string]int{
		"1: POSIX  ADVISORY  WRITE 1234 00:1a:5 0 EOF": 1234,
		"17: -> POSIX  ADVISORY  READ 77 fe:00:12 0 1": 77,
		"2: FLOCK  ADVISORY  WRITE 9 00:1a:5 0 EOF":    9,
		"3: OFDLCK ADVISORY  WRITE -1 00:1a:5 0 EOF":   -1,
		"4: LEASE  ACTIVE    READ 12 00:1a:5 0 EOF":    12,
		"5: POSIX  ADVISORY  WRITE x 00:1a:5 0 EOF":    0,
		"6: POSIX":    0,
		"6: -> POSIX": 0,
		"":            0,
	} {
		if got := lockOwner(line); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func TestReadKernelMemory(t *testing.T) {
	m, err := readKernelMemory()
	if err != nil || m.slab < 1<<20 || m.all < m.slab {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := parseKernelMemory("MemTotal: 1000 kB\nSUnreclaim: 5 kB\n"); err == nil {
		t.Errorf("%+v of a part", m)
	}
}

func TestGrowth(t *testing.T) {
	g := unknown
	for i, look := range []struct {
		now  int64
		want bool
	}{
		{100 << 20, false},
		{107 << 20, false},
		{108 << 20, true},  // 8 MiB more than first
		{115 << 20, false}, // not yet 8 MiB more than the last
		{90 << 20, false},
		{98 << 20, true}, // 8 MiB more than the minimum
	} {
		if got := g.by(look.now, 8<<20); got != look.want {
			t.Errorf("look %d: %t", i, got)
		}
	}
}

func TestParseSockets(t *testing.T) {
	const ( // struct inet_diag_msg
		diagMessageLen, diagState, diagPort, diagAddress, diagPeer = 72, 1, 4, 8, 24
		diagQueues, diagUID, diagInode                             = 56, 64, 68
	)
	attribute := append([]byte{4 + 36, 0, sockdiag.Memory, 0}, make([]byte, 36)...)
	for i := range 9 { // 1, 2, 4, ...
		attribute[4+4*i] = 1 << min(i, 7)
	}
	message := func(kind byte, body ...byte) []byte {
		return append([]byte{byte(16 + len(body)), 0, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, body...)
	}
	socket := message(unix.SOCK_DIAG_BY_FAMILY, append(make([]byte, diagMessageLen), attribute...)...)
	unowned := slices.Clone(socket)
	unowned[16+diagState], unowned[16+diagQueues], unowned[16+diagQueues+4] = 8, 3, 2 // TCP_CLOSE_WAIT
	owned := slices.Clone(unowned)
	owned[16+diagInode], owned[16+diagUID] = 1, 1
	outside := slices.Clone(owned)
	outside[16], outside[16+diagPeer] = unix.AF_INET, 93
	hosts := slices.Clone(owned)
	hosts[16+diagUID], hosts[16+diagPort] = 0, 1
	server, client := slices.Clone(owned), slices.Clone(hosts) // a connection of the host's
	server[16], client[16] = unix.AF_INET, unix.AF_INET
	copy(server[16+diagPort:], "ab"+"cd")
	copy(client[16+diagPort:], "cd"+"ab")
	for _, at := range []int{diagAddress, diagPeer} {
		server[16+at], client[16+at] = 127, 127
	}
	const (
		tcp = 1 + 16 + 32 + 64 + 128
		udp = tcp + 4
	)
	for _, test := range []struct {
		name     string
		part     []byte
		protocol byte
		held     int64
		waiting  int64
		done     bool
		fails    bool
	}{
		{"TCP", socket, unix.IPPROTO_TCP, tcp, 0, false, false},
		{"UDP", slices.Concat(socket, socket), unix.IPPROTO_UDP, 2 * udp, 0, false, false},
		{"not accepted", unowned, unix.IPPROTO_TCP, tcp + socketSize, 5, false, false},
		{"accepted", owned, unix.IPPROTO_TCP, tcp, 5, false, false},
		{"to a host outside", outside, unix.IPPROTO_TCP, tcp, 2, false, false},
		{"of the gateway", hosts, unix.IPPROTO_TCP, 0, 3, false, false},
		{"of the host to a server", slices.Concat(server, client), unix.IPPROTO_TCP, tcp, 5, false, false},
		{"of the host to another server", slices.Concat(owned, client), unix.IPPROTO_TCP, tcp, 8, false, false},
		{"the end", slices.Concat(socket, message(unix.NLMSG_DONE, 0, 0, 0, 0), socket), unix.IPPROTO_TCP, tcp, 0, true, false},
		{"an error", message(unix.NLMSG_ERROR, 0xfe, 0xff, 0xff, 0xff), unix.IPPROTO_TCP, 0, 0, true, true},
		{"cut short", socket[:100], unix.IPPROTO_TCP, 0, 0, true, true},
		{"no attributes", message(unix.SOCK_DIAG_BY_FAMILY, make([]byte, diagMessageLen)...), unix.IPPROTO_TCP, 0, 0, false, false},
	} {
		u := socketUse{firstID: 1}
		done, err := sockdiag.Parse(test.part, func(s sockdiag.Socket) { u.add(s, test.protocol) })
		u.subtractHosts()
		if u.held != test.held || u.waiting() != test.waiting || done != test.done || (err != nil) != test.fails {
			t.Errorf("%s: %+v, %t, %v", test.name, u, done, err)
		}
	}
}

// Data that waits is stalled unless as much has been read since.
func TestStalled(t *testing.T) {
	at := func(port uint16) connection {
		return connection{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), netip.AddrPort{}}
	}
	before := socketUse{queues: map[connection]queue{at(1): {received: 100, read: 1000}, at(2): {sent: 100, acked: 1000}, at(3): {received: 50}}}
	for _, tc := range []struct {
		name   string
		queues map[connection]queue
		want   int64
	}{
		{"unchanged", before.queues, 250},
		{"more", map[connection]queue{at(1): {received: 5000, read: 1000}}, 100},
		{"read in part", map[connection]queue{at(1): {received: 60, read: 1040}, at(2): {sent: 70, acked: 1030}}, 130},
		{"one byte read, others sent", map[connection]queue{at(1): {received: 100, read: 1001}}, 100},
		{"all read", map[connection]queue{at(1): {read: 1100}, at(2): {acked: 1100}}, 0},
		{"all read, others sent", map[connection]queue{at(1): {received: 100, read: 1100}, at(2): {sent: 100, acked: 1100}}, 0},
		{"new connections", map[connection]queue{at(4): {received: 100, sent: 100}}, 0},
		{"none", nil, 0},
	} {
		use := socketUse{queues: tc.queues}
		if got := use.stalledSince(before); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}
