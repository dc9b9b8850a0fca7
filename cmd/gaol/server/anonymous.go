package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

// anonymous returns the tenant of a request by TCP without a token, nil if the settings have none for
// it. A wrong token is not the same as none.
func (s *Server) anonymous(r *http.Request) *tenant.Tenant {
	if r.URL.Path != operation.SnippetPath || s.service.Settings().Snippets.Anonymous == nil || connOf(r).isUnix() || r.Header.Values("Authorization") != nil {
		return nil
	}
	return &tenant.Tenant{Name: settings.AnonymousTenant}
}

// clientAddress returns the address of a client, or of its network for IPv6.
func clientAddress(r *http.Request, proxies []netip.Prefix) string {
	isProxy := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
	}
	tcp, ok := connOf(r).RemoteAddr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	address := tcp.AddrPort().Addr().Unmap()
	for _, hop := range slices.Backward(strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if !isProxy(address) || err != nil {
			break
		}
		address = next.Unmap()
	}
	return networkOf(address)
}

// networkOf names an IPv4 address, or the network of an IPv6 address: subscribers get a whole /64.
func networkOf(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// maxAddresses bounds the addresses whose requests are counted. If there are more, counting starts anew.
const maxAddresses = 10_000

// addresses count the requests of each address since a time. The zero value is ready to use.
type addresses struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// count counts a request. It returns how long the address must wait before the next one, and zero if the
// request is within the limit.
func (as *addresses) count(name string, perMin float64, now time.Time) (wait time.Duration) {
	most := max(1, int(perMin))
	window := time.Duration(min(float64(most)/perMin, 24*60) * float64(time.Minute)) // a minute, or longer for less than one request in it
	as.mu.Lock()
	defer as.mu.Unlock()
	if now.Sub(as.since) >= window || len(as.counts) >= maxAddresses {
		as.since, as.counts = now, map[string]int{}
	}
	if as.counts[name] >= most {
		return window - now.Sub(as.since)
	}
	as.counts[name]++
	return 0
}
