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
		if wait := as.count("a", 6, now.Add(50*time.Second)); wait != 10*time.Second {
			t.Errorf("wait %v, want 10s", wait)
		}
	}
	if wait := as.count("b", 6, now); wait != 0 {
		t.Errorf("another address: %v", wait)
	}
	if wait := as.count("a", 600, now.Add(50*time.Second)); wait != 0 {
		t.Errorf("with another limit: %v", wait)
	}
	if wait := as.count("a", 6, now.Add(time.Minute)); wait != 0 {
		t.Errorf("after the time: %v", wait)
	}
}

// An address can have less than one request a minute.
func TestRareRequests(t *testing.T) {
	var as addresses
	now := time.Now()
	for after, want := range []time.Duration{0, time.Minute, 0} { // at each minute
		if wait := as.count("a", 0.5, now.Add(time.Duration(after)*time.Minute)); wait != want {
			t.Errorf("minute %d: %v, want %v", after, wait, want)
		}
	}
}

// The table is bounded.
func TestAddressesAreBounded(t *testing.T) {
	var as addresses
	now := time.Now()
	for i := range 3 * maxAddresses {
		as.count(fmt.Sprint(i), 1, now)
		if n := len(as.counts); n > maxAddresses {
			t.Fatalf("%d addresses", n)
		}
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
