package policy

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

const localhost = "localhost"

var (
	errNet  = errors.New("not tcp://HOST:PORT, udp://HOST:PORT or dns://NAME")
	errHost = errors.New("not a host: a lower-case name, an address ([::1] in brackets), * or *.NAME")
	errPort = errors.New("not a port: a number from 1 to 65535, or *")
)

// endpoint is a parsed pattern or resource of the network scope.
type endpoint struct {
	proto string // tcp, udp or dns
	host  string
	port  string // "" for dns
}

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
	e.host, e.port = rest[:colon], rest[colon+1:]
	if _, isAddress := parseAddress(e.host); !isAddress && !validName(e.host) {
		return endpoint{}, errHost
	}
	if !validPort(e.port) {
		return endpoint{}, errPort
	}
	return e, nil
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "*" || err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}

// parseAddress parses an IP address in its canonical form, IPv6 in brackets.
func parseAddress(host string) (netip.Addr, bool) {
	text := host
	v6 := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if v6 {
		text = host[1 : len(host)-1]
	}
	a, err := netip.ParseAddr(text)
	return a, err == nil && a.Is4() == !v6 && a.Zone() == "" && a.String() == text
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

// isLocal reports whether host is a name or an address of the loopback device. Connecting
// to the unspecified address also reaches it.
func isLocal(host string) bool {
	if host == localhost {
		return true
	}
	a, ok := parseAddress(host)
	a = a.Unmap()
	return ok && (a.IsLoopback() || a.IsUnspecified())
}

// matches reports whether the pattern p matches the resource r.
func (p endpoint) matches(r endpoint) bool {
	if p.proto != r.proto || p.port != "*" && p.port != r.port {
		return false
	}
	suffix, sub := strings.CutPrefix(p.host, "*")
	switch {
	case sub:
		return strings.HasSuffix(r.host, suffix)
	case isLocal(p.host):
		return isLocal(r.host)
	}
	return p.host == r.host
}

// supports reports whether op is an operation of the endpoint's protocol.
func (p endpoint) supports(op Operation) bool { return (p.proto == "dns") == (op == "dns") }

func matchNet(pattern string, op Operation, resource string) bool {
	// Fast path: most rules name another port, which shows without parsing.
	port := pattern[strings.LastIndexByte(pattern, ':')+1:]
	if port != "*" && op != "dns" && !strings.HasSuffix(resource, ":"+port) {
		return false
	}
	p, err := parseEndpoint(pattern)
	if err != nil || !p.supports(op) {
		return false
	}
	r, err := parseEndpoint(strings.ToLower(resource))
	return err == nil && p.matches(r)
}
