package policy

import (
	"net/netip"
	"strings"
)

// urlPorts are the ports of URLs that name none.
var urlPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "ssh": "22"}

// nearestEndpoint returns the pattern of the network scope that text, which is not one, most likely
// means: that of a URL, or of a host with or without a port. It returns "" for others.
func nearestEndpoint(text string) string {
	if checkText(text) != nil {
		return ""
	}
	proto, rest, ok := strings.Cut(LowerName(text), "://")
	if !ok {
		proto, rest = "tcp", proto
	}
	port, isURL := urlPorts[proto]
	if isURL {
		proto = "tcp"
		rest, _, _ = strings.Cut(rest, "/")
		rest = rest[strings.LastIndexByte(rest, '@')+1:]
	}
	host := rest
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') && !isIPv6(rest) {
		host, port = rest[:i], rest[i+1:]
	}
	if port == "" {
		port = "*"
	}
	nearest := proto + "://" + nearestHost(host)
	if proto != "dns" {
		nearest += ":" + port
	}
	if checkNet(nearest) != nil {
		return ""
	}
	return nearest
}

func isIPv6(s string) bool {
	address, _, _ := strings.Cut(s, "/")
	a, err := netip.ParseAddr(address)
	return err == nil && a.Is6()
}

// nearestHost returns an address or a CIDR prefix in its canonical form, and a name without the
// dots at its ends, which mean a suffix or the root.
func nearestHost(host string) string {
	text := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	switch p, err := netip.ParsePrefix(text); {
	case err == nil && p.Addr().Is4():
		return p.Masked().String()
	case err == nil:
		return "[" + p.Masked().String() + "]"
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Unmap().Is6() {
		return "[" + a.WithZone("").String() + "]"
	}
	host = strings.TrimSuffix(host, ".")
	if strings.HasPrefix(host, ".") {
		host = "*" + host
	}
	return host
}
