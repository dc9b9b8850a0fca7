package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lowerHost lowers a network scope in a world in which ports 3000 and 3001 lead to the host.
func lowerHost(t *testing.T, network string) (*Plan, Permissions) {
	t.Helper()
	p, err := Parse([]byte(`{"network":` + network + `}`))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Lower(p, hostWorld)
	if err != nil {
		t.Fatal(err)
	}
	return plan, p
}

var hostWorld = World{HostPorts: []uint16{3000, 3001}}

// Ports of the host are not ports of the guest, but ports that the rules allow to connect to.
func TestHostPorts(t *testing.T) {
	const connect = `{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:3000"]}`
	for _, c := range []struct {
		network string
		host    []uint16
		local   []PortRange
	}{
		{`{"rules":[` + connect + `]}`, []uint16{3000}, nil},
		{`"allow"`, []uint16{3000, 3001}, []PortRange{{1, 2999}, {3002, 65535}}},
		{`{"rules":[{"mode":"allow","patterns":["tcp://localhost:2999-3000"]},{"mode":"allow","patterns":["tcp://a.test:80"]}]}`, []uint16{3000}, []PortRange{{2999, 2999}}},
		{`{"rules":[{"mode":"allow","patterns":["tcp://*:3001"]}]}`, []uint16{3001}, nil},
		{`{"rules":[{"mode":"allow","patterns":["tcp://a.test:80"]}]}`, nil, nil},
		{`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://localhost:*"]}]}`, nil, nil},
	} {
		plan, _ := lowerHost(t, c.network)
		if diff := cmp.Diff(c.host, plan.Net.Host) + cmp.Diff(c.local, plan.Net.Local); diff != "" || plan.Net.Egress == nil {
			t.Errorf("%s (-want +got):\n%s", c.network, diff)
		}
		for _, port := range hostWorld.HostPorts {
			d, ok := plan.Net.Egress.HostPort(port)
			if want := strings.Contains(fmt.Sprint(c.host), fmt.Sprint(port)); !ok || d.Allowed != want {
				t.Errorf("%s: port %d: %+v, %v", c.network, port, d, ok)
			}
		}
		if d, ok := plan.Net.Egress.HostPort(4000); ok || d.Allowed {
			t.Errorf("%s: port 4000: %+v", c.network, d)
		}
	}
	if plan, _ := lowerHost(t, `"deny"`); plan.Net.Egress != nil || plan.Net.Inet {
		t.Errorf("without rules: %+v", plan.Net)
	}
}

// A run can have fewer ports of the host than its runtime.
func TestHostPortsOfRun(t *testing.T) {
	const ports = `{"rules":[{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:3000-3001"]}]}`
	const all = `{"rules":[{"mode":"allow","patterns":["tcp://localhost:*"]}]}`
	const one = `{"rules":[{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:3001"]}]}`
	for _, c := range []struct {
		runtime, run string
		host         []uint16
		noLocalhost  bool
		err          string
	}{
		{ports, one, []uint16{3001}, false, ""},
		{ports, `"deny"`, nil, false, ""},
		{all, `"deny"`, nil, false, ""},
		{`"allow"`, `{"rules":[{"mode":"allow","patterns":["tcp://a.test:80"]}]}`, nil, true, ""},
		{all, one, nil, false, "the same ports of localhost, or none"},
	} {
		_, outer := lowerHost(t, c.runtime)
		inner, err := Parse([]byte(`{"network":` + c.run + `}`))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := LowerRun(outer, inner, hostWorld)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s in %s: %v", c.run, c.runtime, err)
			}
		case err != nil:
			t.Errorf("%s in %s: %v", c.run, c.runtime, err)
		case cmp.Diff(c.host, plan.Net.Host) != "" || plan.Net.NoLocalhost != c.noLocalhost:
			t.Errorf("%s in %s: %+v", c.run, c.runtime, plan.Net)
		}
	}
}
