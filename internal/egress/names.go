package egress

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// The ranges of synthetic addresses: those for benchmarks of networks, which no host on the
// internet has.
var (
	syntheticV4 = netip.MustParsePrefix("198.18.0.0/15")
	syntheticV6 = netip.MustParsePrefix("2001:2::/48")
)

// TTL is the time to live of the addresses in the answers.
const TTL = time.Minute

// maxNames bounds the names that have an address at the same time.
const maxNames = 16 << 10

var errNamesInUse = errors.New("all synthetic addresses are in use")

// names maps names to synthetic addresses, and back. A name keeps its address for as long
// as possible: programs may use one long after its TTL.
type names struct {
	now func() time.Time

	mu     sync.Mutex
	byName map[string]*name
	slots  map[uint32]*name // by the host part modulo maxNames
	last   uint32           // the host part that was assigned last
}

type name struct {
	text    string
	host    uint32 // of both of its addresses
	expires time.Time
}

func newNames(now func() time.Time) *names {
	return &names{now: now, byName: map[string]*name{}, slots: map[uint32]*name{}}
}

// assign returns the addresses of a name, and renews them for TTL.
func (n *names) assign(text string) (v4, v6 netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.byName[text]
	if found == nil {
		host, ok := n.free()
		if !ok {
			return v4, v6, errNamesInUse
		}
		found = &name{text: text, host: host}
		n.byName[text], n.slots[host%maxNames] = found, found
	}
	found.expires = n.now().Add(TTL)
	v4, v6 = addresses(found.host)
	return v4, v6, nil
}

// free returns an unused host part, and removes an expired name for it. There are eight times as many as names, so
// that one is reused late.
func (n *names) free() (host uint32, ok bool) {
	const most = 8*maxNames - 2 // not the first and the last of the IPv4 range
	for range maxNames {
		n.last = n.last%most + 1
		old := n.slots[n.last%maxNames]
		if old == nil {
			return n.last, true
		}
		if !old.expires.After(n.now()) {
			delete(n.byName, old.text)
			return n.last, true
		}
	}
	return 0, false
}

// find returns the name of a synthetic address, or "" if the address is not assigned.
func (n *names) find(a netip.Addr) string {
	host, ok := hostPart(a)
	n.mu.Lock()
	defer n.mu.Unlock()
	if found := n.slots[host%maxNames]; ok && found != nil && found.host == host {
		return found.text
	}
	return ""
}

// addresses returns the two synthetic addresses with a host part.
func addresses(host uint32) (v4, v6 netip.Addr) {
	a4, a6 := syntheticV4.Addr().As4(), syntheticV6.Addr().As16()
	binary.BigEndian.PutUint32(a4[:], binary.BigEndian.Uint32(a4[:])|host)
	binary.BigEndian.PutUint32(a6[12:], host)
	return netip.AddrFrom4(a4), netip.AddrFrom16(a6)
}

// hostPart is the inverse of addresses.
func hostPart(a netip.Addr) (uint32, bool) {
	switch {
	case syntheticV4.Contains(a):
		a4 := a.As4()
		return binary.BigEndian.Uint32(a4[:]) &^ binary.BigEndian.Uint32(syntheticV4.Addr().AsSlice()), true
	case syntheticV6.Contains(a):
		a16 := a.As16()
		host := binary.BigEndian.Uint32(a16[12:])
		_, v6 := addresses(host)
		return host, v6 == a
	}
	return 0, false
}

// isSynthetic reports whether an address belongs to the ranges of synthetic addresses.
func isSynthetic(a netip.Addr) bool { return syntheticV4.Contains(a) || syntheticV6.Contains(a) }
