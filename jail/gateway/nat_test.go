package gateway

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// The entries of a table follow each other up to its size, and each hook begins and ends at one.
func TestTable(t *testing.T) {
	for family, sizes := range map[int]struct{ offsets, head int }{unix.AF_INET: {88, 112}, unix.AF_INET6: {140, 168}} {
		local := loopback4
		if family == unix.AF_INET6 {
			local = netip.IPv6Loopback()
		}
		rules := Config{TCP: []PortRange{{80, 90}}, UDP: true, Host: []uint16{5432}}.natRules(local, 1000, 1001)
		table, err := natTable(family, rules)
		if err != nil {
			t.Fatal(err)
		}
		const head = 96
		word := func(at int) int { return int(binary.NativeEndian.Uint32(table[at:])) }
		half := func(at int) int { return int(binary.NativeEndian.Uint16(table[at:])) }
		if size := word(40); size != len(table)-head {
			t.Fatalf("size %d of %d bytes", size, len(table))
		}
		starts := map[int]bool{}
		for at := head; at < len(table); {
			starts[at-head] = true
			toTarget, toNext := half(at+sizes.offsets), half(at+sizes.offsets+2)
			if toTarget < sizes.head || toNext != toTarget+half(at+toTarget) {
				t.Fatalf("family %d, entry at %d: target at %d, next at %d", family, at, toTarget, toNext)
			}
			at += toNext
		}
		if want := len(rules) + 5; len(starts) != want || word(36) != want {
			t.Errorf("%d entries, and the table says %d, want %d", len(starts), word(36), want)
		}
		for hook := range hooks {
			if first, last := word(44+4*hook), word(64+4*hook); !starts[first] || !starts[last] || first > last {
				t.Errorf("hook %d: entries at %d and %d", hook, first, last)
			}
		}
	}
}
