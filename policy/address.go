package policy

import (
	"net/netip"
	"slices"
)

// notGlobal are the prefixes whose addresses are not those of hosts on the public internet,
// according to IANA's registries of special-purpose and multicast addresses. Some embed an
// IPv4 address, which may be a private one: translators, 6to4 and Teredo are in the list
// for that reason.
var notGlobal = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, with the metadata services of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112
	"192.52.193.0/24", // AMT
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/3",     // multicast, reserved, broadcast

	"::/8",              // unspecified, loopback, v4-mapped, v4-compatible, 64:ff9b::/96 and 64:ff9b:1::/48 (NAT64)
	"100::/8",           // discard
	"200::/7",           // reserved
	"400::/6",           // reserved
	"800::/5",           // reserved
	"1000::/4",          // reserved
	"2001::/23",         // protocol assignments, with Teredo, benchmarks and ORCHID
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
	"4000::/2",          // unassigned, with 5f00::/16 for segment routing
	"8000::/1",          // unassigned, unique local, link-local, site-local, multicast
)

// never are addresses that no rule opens: those on which the host reaches itself or groups
// of hosts.
var never = prefixes("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/128", "::1/128", "ff00::/8")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParsePrefix(s)
	}
	return list
}

// addrPrefix returns the prefix of a single address.
func addrPrefix(a netip.Addr) netip.Prefix {
	a = a.WithZone("").Unmap()
	return netip.PrefixFrom(a, a.BitLen())
}

// containsPrefix reports whether all addresses of q are in p, which may be invalid.
func containsPrefix(p, q netip.Prefix) bool {
	return p.IsValid() && p.Bits() <= q.Bits() && p.Contains(q.Addr())
}

func containedInAny(list []netip.Prefix, q netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return containsPrefix(p, q) })
}

func overlapsAny(list []netip.Prefix, q netip.Prefix) bool {
	return slices.ContainsFunc(list, q.Overlaps)
}
