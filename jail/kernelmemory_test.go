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
	socket := append(make([]byte, diagMessageLen), attribute...)
	unowned := slices.Clone(socket)
	unowned[diagState], unowned[diagQueues], unowned[diagQueues+4] = 8, 3, 2 // TCP_CLOSE_WAIT
	owned := slices.Clone(unowned)
	owned[diagInode], owned[diagUID] = 1, 1
	outside := slices.Clone(owned)
	outside[0], outside[diagPeer] = unix.AF_INET, 93
	hosts := slices.Clone(owned)
	hosts[diagUID], hosts[diagPort] = 0, 1
	server, client := slices.Clone(owned), slices.Clone(hosts) // a connection of the host's
	server[0], client[0] = unix.AF_INET, unix.AF_INET
	copy(server[diagPort:], "ab"+"cd")
	copy(client[diagPort:], "cd"+"ab")
	for _, at := range []int{diagAddress, diagPeer} {
		server[at], client[at] = 127, 127
	}
	const (
		tcp = 1 + 16 + 32 + 64 + 128
		udp = tcp + 4
	)
	for _, test := range []struct {
		name     string
		sockets  [][]byte
		protocol byte
		held     int64
		waiting  int64
	}{
		{"TCP", [][]byte{socket}, unix.IPPROTO_TCP, tcp, 0},
		{"UDP", [][]byte{socket, socket}, unix.IPPROTO_UDP, 2 * udp, 0},
		{"not accepted", [][]byte{unowned}, unix.IPPROTO_TCP, tcp + socketSize, 5},
		{"accepted", [][]byte{owned}, unix.IPPROTO_TCP, tcp, 5},
		{"to a host outside", [][]byte{outside}, unix.IPPROTO_TCP, tcp, 2},
		{"of the gateway", [][]byte{hosts}, unix.IPPROTO_TCP, 0, 3},
		{"of the host to a server", [][]byte{server, client}, unix.IPPROTO_TCP, tcp, 5},
		{"of the host to another server", [][]byte{owned, client}, unix.IPPROTO_TCP, tcp, 8},
		{"cut short", [][]byte{socket[:60]}, unix.IPPROTO_TCP, 0, 0},
		{"no attributes", [][]byte{socket[:diagMessageLen]}, unix.IPPROTO_TCP, 0, 0},
	} {
		u := socketUse{firstID: 1}
		for _, message := range test.sockets {
			if s, ok := sockdiag.Parse(message); ok {
				u.add(s, test.protocol)
			}
		}
		u.subtractHosts()
		if u.held != test.held || u.waiting() != test.waiting {
			t.Errorf("%s: %+v", test.name, u)
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
