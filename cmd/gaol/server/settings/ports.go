package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PortRange is the ports from First to Last.
type PortRange struct{ First, Last uint16 }

// UnmarshalText parses a port, or a range such as 8000-8099.
func (r *PortRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a == 0 || b < a {
		return fmt.Errorf("%q: want a port, or a range such as 8000-8099", text)
	}
	*r = PortRange{uint16(a), uint16(b)}
	return nil
}

// AllowsHostPort reports whether tenants may name a port.
func (s *Settings) AllowsHostPort(port int) bool {
	return s.Trusted || slices.ContainsFunc(s.HostPorts, func(r PortRange) bool { return int(r.First) <= port && port <= int(r.Last) })
}
