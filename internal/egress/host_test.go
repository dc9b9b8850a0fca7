package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"testing"

	"gaol/policy"
)

// hostWorld is newWorld where ports 3000 and 3001 lead to the host, if the rules allow it.
func hostWorld(t *testing.T, c Config, rules string, ports ...int) *world {
	t.Helper()
	w := newWorldWith(t, c, rules, Limits{}, ports...)
	p, err := policy.Parse([]byte(`{"network":` + rules + `}`))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := policy.Lower(p, policy.World{HostPorts: []uint16{3000, 3001}})
	if err != nil {
		t.Fatal(err)
	}
	w.client.rules = plan.Net.Egress
	return w
}

// Ports of the host that the rules allow are reached, without a proxy, on the address that the guest has
// chosen or the other one of localhost. Their events are those of other connections.
func TestHostPort(t *testing.T) {
	w := hostWorld(t, Config{Proxy: func(string, uint16) (*url.URL, error) {
		t.Error("a proxy is asked for")
		return nil, nil
	}}, `{"rules":[{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:3000"]}]}`, 3000)
	w.listen(loopback4, 3000, echo("v4 "))
	if got, err := w.tryExchange("127.0.0.1", 3000, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"); err != nil || got != "v4 GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	e := w.waitEvent(func(e Event) bool { return e.Outcome == Closed })
	if e.Host != localhost || e.Address != netip.AddrPortFrom(loopback4, 3000) || e.Rule != 0 || e.BytesIn == 0 || e.BytesOut == 0 {
		t.Errorf("%+v", e)
	}
	if got, err := w.tryExchange("::1", 3000, "x"); err != nil || got != "v4 x" {
		t.Errorf("from ::1: %q, %v", got, err)
	}
}

// No other port, and no other address of localhost, is reached. The servers on them are those of
// the host.
func TestHostPortDenied(t *testing.T) {
	w := hostWorld(t, Config{}, `{"rules":[{"mode":"allow","patterns":["tcp://*:*"]},{"mode":"deny","patterns":["tcp://localhost:3001"]}]}`, 3000, 3001, 3002)
	for _, at := range []string{"127.0.0.1:3000", "127.0.0.2:3000", "127.0.0.1:3001", "127.0.0.1:3002", "[::1]:3002"} {
		a := netip.MustParseAddrPort(at)
		w.listen(a.Addr(), a.Port(), echo("reached"))
	}
	for at, ok := range map[string]bool{"127.0.0.1:3000": true, "127.0.0.2:3000": false, "127.0.0.1:3001": false, "::1:3001": false, "127.0.0.1:3002": false, "::1:3002": false} {
		var port int
		host := at[:len(at)-5]
		if _, err := fmt.Sscan(at[len(at)-4:], &port); err != nil {
			t.Fatal(err)
		}
		if got, err := w.tryExchange(host, port, "x"); (err == nil && got != "") != ok {
			t.Errorf("%s: %q, %v", at, got, err)
		}
	}
	e := w.waitEvent(func(e Event) bool { return e.Port == 3001 })
	if e.Outcome != Denied || e.Rule != 1 || e.Host != localhost {
		t.Errorf("%+v", e)
	}
}

// A connect to a denied port of the host fails immediately.
func TestAllowsHostPort(t *testing.T) {
	w := hostWorld(t, Config{}, `{"rules":[{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:3000","tcp://localhost:4000"]}]}`)
	for to, want := range map[string]bool{"127.0.0.1:3000": true, "[::1]:3000": true, "0.0.0.0:3000": true, "127.0.0.1:3001": false, "0.0.0.0:3001": false, "127.0.0.1:4000": true, "127.0.0.1:4001": false, "127.0.0.1:0": true} {
		local := func(port uint16) policy.Decision { return policy.Decision{Allowed: port == 4000, Rule: -1} }
		if got := w.server.Allows(w.client, netip.MustParseAddrPort(to), local); got != want {
			t.Errorf("%s: %v", to, got)
		}
	}
}
