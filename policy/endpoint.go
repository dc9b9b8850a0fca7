package policy

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const localhost = "localhost"

var (
	errNet  = errors.New("not tcp://HOST:PORT, udp://HOST:PORT or dns://NAME")
	errHost = errors.New("not a host: a lower-case name, an address or its CIDR prefix ([::1] and [fd00::/8] in brackets), * or *.NAME")
	errPort = errors.New("not a port: *, or a list such as 80,443,8000-8099 of numbers from 1 to 65535")
)

// endpoint is a parsed pattern or resource of the network scope.
type endpoint struct {
	proto string       // tcp, udp or dns
	host  string       // a name, "*", "*.NAME", or the text of net
	net   netip.Prefix // the addresses; invalid for names
	ports []PortRange  // nil for dns
}

// PortRange is the ports from First to Last.
type PortRange struct{ First, Last uint16 }

var allPorts = PortRange{1, 65535}

// maxPortRanges bounds the list of ports in one pattern.
const maxPortRanges = 64

// checkNet validates a pattern of the network scope.
func checkNet(s string) error {
	_, err := parseEndpoint(s)
	return err
}

func parseEndpoint(s string) (endpoint, error) {
	proto, rest, ok := strings.Cut(s, "://")
	if !ok {
		return endpoint{}, errNet
	}
	e := endpoint{proto: proto, host: rest}
	switch proto {
	case "dns":
		if !validName(rest) {
			return endpoint{}, errHost
		}
		return e, nil
	case "tcp", "udp":
	default:
		return endpoint{}, errNet
	}
	colon := strings.LastIndexByte(rest, ':')
	if colon < 0 {
		return endpoint{}, errPort
	}
	e.host = rest[:colon]
	if e.net, ok = parsePrefix(e.host); !ok && !validName(e.host) {
		return endpoint{}, errHost
	}
	if e.ports, ok = parsePorts(rest[colon+1:]); !ok {
		return endpoint{}, errPort
	}
	return e, nil
}

// parsePorts parses "*" or a list of ports and ranges, in any order.
func parsePorts(s string) ([]PortRange, bool) {
	if s == "*" {
		return []PortRange{allPorts}, true
	}
	if strings.Count(s, ",") >= maxPortRanges {
		return nil, false
	}
	var list []PortRange
	for item := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(item, "-")
		first, ok := parsePort(from)
		last := first
		if isRange && ok {
			last, ok = parsePort(to)
		}
		if !ok || last < first {
			return nil, false
		}
		list = append(list, PortRange{first, last})
	}
	return list, true
}

func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}

// parsePrefix parses an IP address or a CIDR prefix in its canonical form, IPv6 in
// brackets. An IPv4 address in an IPv6 one is the same as the IPv4 address.
func parsePrefix(host string) (netip.Prefix, bool) {
	text := host
	v6 := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if v6 {
		text = host[1 : len(host)-1]
	}
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		return p, err == nil && p.String() == text && p == p.Masked() && p.Addr().Is4() == !v6 && !p.Addr().Is4In6()
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.String() != text || a.Zone() != "" || a.Is4() == v6 {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true
}

// validName accepts a host name, "*", and "*." followed by a host name. It rejects names
// whose last label is a number, because resolvers read 127.1 as an address.
func validName(s string) bool {
	if s == "*" {
		return true
	}
	s = strings.TrimPrefix(s, "*.")
	if len(s) > 253 {
		return false
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// LowerName returns a host's name in lower case. Only ASCII has cases in names: U+017F and U+212A, which
// Unicode folds to s and k, are in other names.
func LowerName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// ValidName reports whether s is a host name in lower case, without a dot at its end, that
// a rule could name. Underscores are allowed, as in _sip._tcp.example.com.
func ValidName(s string) bool { return !strings.Contains(s, "*") && validName(s) }

// isLocal reports whether p's host is only the loopback device: its name or
// an address. Connecting to the unspecified address also reaches it.
func (p endpoint) isLocal() bool {
	if p.host == localhost {
		return true
	}
	a := p.net.Addr()
	return p.net.IsValid() && (a.IsLoopback() && (a.Is6() || p.net.Bits() >= 8) || a.IsUnspecified() && p.net.IsSingleIP())
}

// matches reports whether the pattern p matches the resource r. p's ports must contain all of r's; a dns
// endpoint has none.
func (p endpoint) matches(r endpoint) bool {
	missing := slices.ContainsFunc(r.ports, func(q PortRange) bool { return !p.containsPorts(q) })
	return p.proto == r.proto && !missing && p.matchesHost(r)
}

func (p endpoint) matchesHost(r endpoint) bool {
	switch {
	case p.host == "*":
		return true
	case p.isLocal():
		return r.isLocal()
	case p.net.IsValid():
		return r.net.IsValid() && containsPrefix(p.net, r.net)
	}
	return p.matchesName(r.host)
}

// matchesName reports whether p matches name. p must be a pattern of names, not addresses.
func (p endpoint) matchesName(name string) bool {
	suffix, wildcard := strings.CutPrefix(p.host, "*")
	return wildcard && strings.HasSuffix(name, suffix) || p.host == name
}

func (p endpoint) containsPorts(q PortRange) bool {
	return slices.ContainsFunc(p.ports, func(r PortRange) bool { return r.First <= q.First && q.Last <= r.Last })
}

// supports reports whether op is an operation of the endpoint's protocol.
func (p endpoint) supports(op Operation) bool { return (p.proto == "dns") == (op == "dns") }

func matchNet(pattern string, op Operation, resource string) bool {
	p, err := parseEndpoint(pattern)
	if err != nil || !p.supports(op) {
		return false
	}
	r, err := parseEndpoint(LowerName(resource))
	return err == nil && p.matches(r)
}

// notGlobal are the prefixes of addresses that are not on the public internet, according to
// IANA's registries of special-purpose and multicast addresses. Some embed an
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
