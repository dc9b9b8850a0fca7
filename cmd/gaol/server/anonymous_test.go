package server

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	var as addresses
	now := time.Now()
	for i := range 6 {
		wait := as.count("a", 6, now)
		if wait != 0 {
			t.Errorf("request %d: %v", i+1, wait)
		}
	}
	for range 2 { // a refused request does not count
		if wait := as.count("a", 6, now); wait != 10*time.Second {
			t.Errorf("wait %v, want 10s", wait)
		}
	}
	if wait := as.count("b", 6, now); wait != 0 {
		t.Errorf("another address: %v", wait)
	}
	if wait := as.count("a", 6, now.Add(10*time.Second)); wait != 0 {
		t.Errorf("after the time: %v", wait)
	}
	if wait := as.count("a", 600, now.Add(11*time.Second)); wait > 100*time.Millisecond {
		t.Errorf("with another limit: %v", wait)
	}
}

// The table is bounded, and forgets the addresses that have not sent anything for the longest time.
func TestAddressesAreBounded(t *testing.T) {
	var as addresses
	now := time.Now()
	for i := range 3 * maxAddresses {
		as.count(fmt.Sprint(i), 1, now)
		as.count("busy", 1, now)
	}
	if n := len(as.recent) + len(as.older); n > maxAddresses {
		t.Errorf("%d addresses", n)
	}
	if as.count("busy", 1, now) == 0 {
		t.Error("an address that sends again and again is forgotten")
	}
}

func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := networkOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
