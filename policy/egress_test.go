package policy

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func egressOf(t *testing.T, rules string) *Egress {
	t.Helper()
	p := parse(t, `{"network":`+rules+`}`)
	return NewEgress(p.Network)
}

func TestEgressNames(t *testing.T) {
	const one = `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:443"]}]}`
	const below = `{"rules":[{"mode":"allow","patterns":["tcp://*.example.com:80,8000-8099"]},{"mode":"deny","patterns":["tcp://bad.example.com:*"]}]}`
	const except = `{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://*.evil.test:*","dns://noisy.test","tcp://*:25"]}]}`
	for _, tc := range []struct {
		rules, name     string
		port            uint16
		lookUp, connect bool
	}{
		{one, "api.example.com", 443, true, true},
		{one, "api.example.com", 80, true, false},
		{one, "example.com", 443, false, false},
		{one, "a.api.example.com", 443, false, false},
		{below, "a.example.com", 80, true, true},
		{below, "a.b.example.com", 8099, true, true},
		{below, "a.example.com", 8100, true, false},
		{below, "example.com", 80, false, false},
		{below, "aexample.com", 80, false, false},
		{below, "bad.example.com", 80, false, false},
		{except, "good.test", 443, true, true},
		{except, "good.test", 25, true, false},
		{except, "a.evil.test", 443, false, false},
		{except, "noisy.test", 443, false, true}, // without a look-up no connection has this name
		{`"allow"`, "a", 1, true, true},
		{`"deny"`, "a", 1, false, false},
		{`{"rules":[{"mode":"allow","operations":["dns"],"patterns":["dns://*"]}]}`, "a", 1, true, false},
		{`{"rules":[{"mode":"allow","patterns":["tcp://localhost:*"]}]}`, "a", 1, false, false},
	} {
		e := egressOf(t, tc.rules)
		if got := e.LookUp(tc.name).Allowed; got != tc.lookUp {
			t.Errorf("%s: look up %s: %t", tc.rules, tc.name, got)
		}
		if got := e.Connect(tc.name, tc.port).Allowed; got != tc.connect {
			t.Errorf("%s: connect to %s:%d: %t", tc.rules, tc.name, tc.port, got)
		}
	}
}

// privateAddresses are addresses without hosts of the public internet.
var privateAddresses = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
	"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1",
	"192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
	"240.0.0.1", "255.255.255.255",
	"::", "::1", "::2", "::7f00:1", "::a00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:a00:1",
	"64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::1", "2001:2::1", "2001:10::1", "2001:20::1",
	"2001:db8::1", "2002:7f00:1::1", "2002:a00:1::1", "2002:a9fe:a9fe::", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254",
	"fe80::1", "fe80::a9fe:a9fe", "fec0::1", "ff02::1", "ff0e::1",
}

func TestPrivateAddressesNeedARule(t *testing.T) {
	for _, rules := range []string{`"allow"`, `{"rules":[{"mode":"allow","patterns":["tcp://*:*"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://*.test:*","tcp://*:80"]}]}`} {
		e := egressOf(t, rules)
		for _, text := range privateAddresses {
			a := netip.MustParseAddr(text)
			if e.ConnectAddr(a, 80).Allowed {
				t.Errorf("%s: connects to %s", rules, a)
			}
			if e.Resolved(a, 80).Allowed {
				t.Errorf("%s: a name may be %s", rules, a)
			}
		}
		for _, text := range []string{"1.1.1.1", "9.255.255.255", "11.0.0.0", "93.184.215.14", "100.63.255.255", "128.0.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "193.0.0.1", "223.255.255.255", "::ffff:8.8.8.8", "2606:2800:220:1::1", "2a00::1", "2001:4860:4860::8888", "2400:cb00::1"} {
			a := netip.MustParseAddr(text)
			if !e.ConnectAddr(a, 80).Allowed || !e.Resolved(a, 80).Allowed {
				t.Errorf("%s: does not connect to %s", rules, a)
			}
		}
	}
}

func TestRulesAboutAddresses(t *testing.T) {
	const rules = `{"rules":[{"mode":"allow","patterns":["tcp://*:443","tcp://10.0.0.0/8:5432,6000-6010","tcp://[fd00:1::]:80","tcp://[fd00:2::/32]:80","tcp://127.0.0.0/8:80","tcp://0.0.0.0/0:81"]},
		{"mode":"deny","patterns":["tcp://10.9.0.0/16:*","tcp://1.2.3.4:443"]}]}`
	e := egressOf(t, rules)
	for _, tc := range []struct {
		addr              string
		port              uint16
		connect, resolved bool
	}{
		{"10.1.2.3", 5432, true, true},
		{"::ffff:10.1.2.3", 5432, true, true},
		{"10.1.2.3", 443, false, false},
		{"10.1.2.3", 6010, true, true},
		{"10.1.2.3", 6011, false, false},
		{"10.9.2.3", 5432, false, false},
		{"1.2.3.4", 443, false, false},
		{"1.2.3.5", 443, true, true},
		{"1.2.3.5", 80, false, true}, // a name's rule decides about the port
		{"fd00:1::", 80, true, true},
		{"fd00:1::1", 80, false, false},
		{"fd00:2:3::1", 80, true, true},
		{"127.0.0.1", 80, false, false},
		{"127.0.0.1", 81, false, false}, // no rule opens the host's own
		{"0.0.0.0", 81, false, false},
		{"::ffff:127.0.0.1", 81, false, false},
		{"224.0.0.1", 81, false, false},
		{"169.254.169.254", 81, true, true},
	} {
		a := netip.MustParseAddr(tc.addr)
		if got := e.ConnectAddr(a, tc.port).Allowed; got != tc.connect {
			t.Errorf("connect to %s, %d: %t", a, tc.port, got)
		}
		if got := e.Resolved(a, tc.port).Allowed; got != tc.resolved {
			t.Errorf("a name may be %s, %d: %t", a, tc.port, got)
		}
	}
}

// Under a wider rule, an address from elsewhere would go around a denied name.
func TestDeniedNameRefusesAddresses(t *testing.T) {
	public := netip.MustParseAddr("93.184.215.14")
	for _, tc := range []struct {
		rules string
		ok    bool
		rule  int
	}{
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:443"]}]}`, false, 0},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:80"]}]}`, true, -1},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["dns://evil.test"]}]}`, false, 0},
		{`{"rules":[{"mode":"deny","patterns":["tcp://evil.test:443"]},{"mode":"allow","patterns":["tcp://*:*"]}]}`, true, 1},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:443"]},{"mode":"allow","patterns":["tcp://93.184.0.0/16:443"]}]}`, true, 1},
	} {
		if d := egressOf(t, tc.rules).ConnectAddr(public, 443); d != (Decision{tc.ok, tc.rule}) {
			t.Errorf("%s: %+v", tc.rules, d)
		}
	}
}

func TestDistinguishesNames(t *testing.T) {
	for rules, want := range map[string]bool{
		`"allow"`: false,
		`{"rules":[{"mode":"allow","patterns":["tcp://*:443"]}]}`:                                        false,
		`{"rules":[{"mode":"allow","patterns":["tcp://*.test:443"]}]}`:                                   true,
		`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:443"]}]}`:               true,
		`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:80"]}]}`:                false,
		`{"rules":[{"mode":"allow","patterns":["tcp://a.test:443"]}]}`:                                   true,
		`{"rules":[{"mode":"allow","patterns":["tcp://*:443"]},{"mode":"deny","patterns":["dns://a"]}]}`: true,
	} {
		if got := egressOf(t, rules).DistinguishesNames(443); got != want {
			t.Errorf("%s: %t", rules, got)
		}
	}
}

func TestLowerHostsOutside(t *testing.T) {
	const ops = `"operations":["connect","fetch"],`
	for _, tc := range []struct {
		rules string
		out   bool
		local []PortRange
		udp   bool
	}{
		{`"allow"`, true, []PortRange{{1, 65535}}, true},
		{`{"rules":[{"mode":"allow","patterns":["tcp://*:*"]}]}`, true, []PortRange{{1, 65535}}, false},
		{`{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:443"]}]}`, true, nil, false},
		{`{"rules":[{"mode":"allow","patterns":["tcp://*:443"]}]}`, true, []PortRange{{443, 443}}, false},
		{`{"rules":[{"mode":"allow",` + ops + `"patterns":["tcp://*:*"]}]}`, true, nil, false},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://*:25","tcp://localhost:5000-5999"]}]}`, true, []PortRange{{1, 24}, {26, 4999}, {6000, 65535}}, true},
		{`{"rules":[{"mode":"allow","patterns":["tcp://a.test:1","tcp://localhost:3000-3001","udp://localhost:*"]}]}`, true, []PortRange{{3000, 3001}}, true},
		{`{"rules":[{"mode":"allow","patterns":["tcp://localhost:*"]},{"mode":"deny","patterns":["tcp://a.b:1"]}]}`, false, nil, false},
	} {
		plan, err := Lower(parse(t, `{"network":`+tc.rules+`}`), World{})
		if err != nil {
			t.Errorf("%s: %v", tc.rules, err)
			continue
		}
		n := plan.Net
		if (n.Egress != nil) != tc.out || !slices.Equal(n.Local, tc.local) || n.UDP != tc.udp {
			t.Errorf("%s: %+v", tc.rules, n)
		}
	}
	for _, tc := range []struct{ rules, why string }{
		{`{"rules":[{"mode":"allow","patterns":["udp://example.com:53"]}]}`, "UDP does not leave"},
		{`{"rules":[{"mode":"allow","operations":["fetch"],"patterns":["tcp://example.com:80"]}]}`, "cannot be distinguished"},
		{`{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://example.com:80"]}]}`, "listen on localhost only"},
		{`{"rules":[{"mode":"allow","patterns":["tcp://224.0.0.1:80"]}]}`, "never reached"},
		{`{"rules":[{"mode":"allow","patterns":["tcp://127.0.0.0/8:80"]}]}`, "the kernel checks ports"},
	} {
		_, err := Lower(parse(t, `{"network":`+tc.rules+`}`), World{})
		var rule *RuleError
		if !errors.As(err, &rule) || !strings.Contains(rule.Why, tc.why) || rule.Nearest == "" {
			t.Errorf("%s: %v", tc.rules, err)
		}
	}
}

// A run's rules may not reach more than its runtime's, in any spelling.
func TestNarrowHostsOutside(t *testing.T) {
	for _, tc := range []struct {
		outer, inner string
		ok           bool
	}{
		{`"allow"`, `{"rules":[{"mode":"allow","patterns":["tcp://a.test:443"]}]}`, true},
		{`"allow"`, `{"rules":[{"mode":"allow","patterns":["tcp://10.0.0.1:443"]}]}`, false},
		{`"allow"`, `{"rules":[{"mode":"allow","patterns":["tcp://1.0.0.0/8:443"]}]}`, true},
		{`{"rules":[{"mode":"allow","patterns":["tcp://10.0.0.0/8:*"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://10.1.0.0/16:443"]}]}`, true},
		{`{"rules":[{"mode":"allow","patterns":["tcp://10.1.0.0/16:*"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://10.0.0.0/8:443"]}]}`, false},
		{`{"rules":[{"mode":"allow","patterns":["tcp://a.test:80-90"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://a.test:85,86"]}]}`, true},
		{`{"rules":[{"mode":"allow","patterns":["tcp://a.test:80-90"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://a.test:85-91"]}]}`, false},
		{`{"rules":[{"mode":"allow","patterns":["tcp://*.a.test:80"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://a.test:80"]}]}`, false},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:*"]}]}`, `"allow"`, false},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://evil.test:*"]}]}`, `{"rules":[{"mode":"allow","patterns":["tcp://1.2.3.4:80"]}]}`, false},
	} {
		_, err := Narrow(parse(t, `{"network":`+tc.outer+`}`), parse(t, `{"network":`+tc.inner+`}`), World{})
		if (err == nil) != tc.ok {
			t.Errorf("%s in %s: %v", tc.inner, tc.outer, err)
		}
	}
}

// "*" means all operations of any scope, and http the same as fetch.
func TestOperationNames(t *testing.T) {
	p := parse(t, `{"fs":{"rules":[{"mode":"allow","operations":["*"],"paths":["/a/**"]}]},
		"network":{"rules":[{"mode":"allow","operations":["http","connect"],"patterns":["tcp://a.test:80"]}]},"process":{"rules":[{"mode":"allow","operations":["*"]}]}}`)
	for _, tc := range []struct {
		scope    string
		op       Operation
		resource string
		want     bool
	}{
		{FS, "read", "/a", true},
		{FS, "chmod", "/a", true},
		{FS, "read", "/b", false},
		{Network, "fetch", "tcp://a.test:80", true},
		{Network, "http", "tcp://a.test:80", true},
		{Network, "listen", "tcp://localhost:80", false},
		{Process, "signal", "", true},
	} {
		if got := p.Decide(tc.scope, tc.op, tc.resource).Allowed; got != tc.want {
			t.Errorf("%s %s %s: %t", tc.scope, tc.op, tc.resource, got)
		}
	}
	for _, bad := range []string{`["*","read"]`, `["read","*"]`, `["http"]`} {
		if _, err := Parse([]byte(`{"fs":{"rules":[{"mode":"allow","operations":` + bad + `,"paths":["/a"]}]}}`)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if _, err := Parse([]byte(`{"network":{"rules":[{"mode":"allow","operations":["http","fetch"],"patterns":["tcp://a:1"]}]}}`)); err == nil {
		t.Error("a repeated operation is accepted")
	}
	if _, err := Lower(p, World{}); err != nil {
		t.Error(err)
	}
}

// Each pattern is explained by what enforces it.
func TestExplainEgress(t *testing.T) {
	plan, err := Lower(parse(t, `{"network":{"rules":[{"mode":"allow","patterns":["tcp://a.test:443","tcp://10.0.0.0/8:1","tcp://*:80","tcp://localhost:3000","udp://localhost:*","dns://b.test"]}]}}`), World{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range plan.Notes {
		if n.Scope != Network || n.Rule != 0 {
			continue
		}
		for _, want := range []string{"tcp://a.test:443: egress, by the look-up", "10.0.0.0/8:1: egress, by the address", "tcp://*:80: egress, by port", "localhost:3000: BPF, by port", "udp://localhost:*: BPF", "dns://b.test: the jail's resolver"} {
			if !strings.Contains(n.Text, want) {
				t.Errorf("%q lacks %q", n.Text, want)
			}
		}
		return
	}
	t.Error("the rule is not explained")
}
