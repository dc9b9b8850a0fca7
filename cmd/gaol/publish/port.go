package publish

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Port is a port of the host that leads to one of the guest.
type Port struct {
	Host  netip.AddrPort // port 0: any that is free
	Guest uint16
}

var errPort = errors.New("want ADDRESS:PORT:PORT, an address and a port of the host and a port of the program, or PORT:PORT for 127.0.0.1; IPv6 in brackets")

// ParsePort parses ADDRESS:PORT:PORT, or PORT:PORT, which means 127.0.0.1. An IPv6 address is in
// brackets.
func ParsePort(s string) (Port, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return Port{}, errPort
	}
	address, text := "127.0.0.1", s[:i]
	if strings.Contains(text, ":") {
		var err error
		if address, text, err = net.SplitHostPort(text); err != nil {
			return Port{}, errPort
		}
	}
	host, err1 := netip.ParseAddr(address)
	port, err2 := strconv.ParseUint(text, 10, 16)
	guest, err3 := strconv.ParseUint(s[i+1:], 10, 16)
	if errors.Join(err1, err2, err3) != nil || guest == 0 || host.Is6() != (s[0] == '[') {
		return Port{}, errPort
	}
	return Port{netip.AddrPortFrom(host, uint16(port)), uint16(guest)}, nil
}

// String returns the text that ParsePort parses.
func (p Port) String() string { return fmt.Sprintf("%s:%d", p.Host, p.Guest) }
