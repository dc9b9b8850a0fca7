package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
)

// Egress decides which external hosts a guest may reach, by the rules of the network
// scope. The zero Egress denies everything. It is immutable and safe for concurrent use.
//
// The last rule that matches decides, as in [Permissions.Decide], with these additions:
//
//   - An address that is not one of the public internet is denied unless a rule names it,
//     or a CIDR prefix that contains it. * does not name any. No rule opens the host's
//     loopback and unspecified addresses, or multicast: see [Egress.HostPort].
//   - A rule that allows TCP to a name also allows its look-up. A rule that denies
//     TCP to a name on all ports denies the look-up, too.
//   - If a rule denies a name, a broader rule with * allows no literal addresses: with an
//     address from elsewhere, a guest could bypass the denial.
type Egress struct {
	scope Scope // that the rules are made of
	rules []egressRule
	allow bool // the default
	host  map[uint16]Decision
}

type egressRule struct {
	index        int // in the scope
	allow        bool
	connect, dns bool
	ends         []endpoint
}

// NewEgress returns the decisions of a network scope, which must have passed
// [Permissions.Check].
func NewEgress(s Scope) *Egress { return newEgress(s, "connect") }

// egressJSON is an Egress of a plan in JSON.
type egressJSON struct {
	Scope Scope
	Host  map[uint16]Decision
}

// MarshalJSON encodes the Egress of a plan.
func (e *Egress) MarshalJSON() ([]byte, error) { return json.Marshal(egressJSON{e.scope, e.host}) }

// UnmarshalJSON decodes what MarshalJSON has encoded. The rules must have passed [Permissions.Check].
func (e *Egress) UnmarshalJSON(text []byte) error {
	var in egressJSON
	err := json.Unmarshal(text, &in)
	*e = *NewEgress(in.Scope)
	e.host = in.Host
	return err
}

// newEgress returns the decisions about dns, and about connections by the rules for op,
// which is connect or fetch.
func newEgress(s Scope, op Operation) *Egress {
	e := &Egress{scope: s, allow: s.Default == Allow}
	for i, r := range s.Rules {
		rule := egressRule{index: i, allow: r.Mode == Allow, connect: r.decides(op), dns: r.decides("dns")}
		for _, text := range r.Patterns {
			if end, err := parseEndpoint(text); err == nil && end.proto != "udp" && !end.isLocal() {
				rule.ends = append(rule.ends, end)
			}
		}
		e.rules = append(e.rules, rule)
	}
	return e
}

// find returns the decision of the last rule for which match returns true for one of its
// patterns. Without one it returns the default.
func (e *Egress) find(match func(r *egressRule, end endpoint) bool) Decision {
	for i := range slices.Backward(e.rules) {
		if r := &e.rules[i]; slices.ContainsFunc(r.ends, func(end endpoint) bool { return match(r, end) }) {
			return Decision{r.allow, r.index}
		}
	}
	return Decision{e.allow, -1}
}

// LookUp decides whether a name may be resolved. The name is in lower case and without a
// dot at its end.
func (e *Egress) LookUp(name string) Decision {
	return e.find(func(r *egressRule, end endpoint) bool {
		switch {
		case end.net.IsValid() || !end.matchesName(name):
			return false
		case end.proto == "dns":
			return r.dns
		}
		return r.connect && (r.allow || end.containsPorts(allPorts))
	})
}

// Connect decides whether TCP may connect to a port of a host that was looked up by name.
// Each address that the name resolves to must pass [Egress.Resolved], too.
func (e *Egress) Connect(name string, port uint16) Decision {
	return e.find(func(r *egressRule, end endpoint) bool {
		return end.allowsPort(r, port) && !end.net.IsValid() && end.matchesName(name)
	})
}

// ConnectAddr decides whether TCP may connect to an address that was not looked up.
func (e *Egress) ConnectAddr(a netip.Addr, port uint16) Decision {
	return e.connectPrefix(addrPrefix(a), port)
}

// connectPrefix decides about all addresses of a prefix together.
func (e *Egress) connectPrefix(p netip.Prefix, port uint16) Decision {
	if containedInAny(never, p) {
		return Decision{Rule: -1}
	}
	named, global := false, !overlapsAny(notGlobal, p)
	d := e.find(func(r *egressRule, end endpoint) bool {
		if !end.allowsPort(r, port) {
			return false
		}
		named = containsPrefix(end.net, p)
		return named || end.host == "*" && (!r.allow || global)
	})
	if !d.Allowed || named {
		return d
	}
	if !global {
		return Decision{Rule: -1}
	}
	if i := e.deniedName(d.Rule, port); i >= 0 {
		return Decision{Rule: i}
	}
	return d
}

// Resolved decides whether a connection that [Egress.Connect] or [Egress.ConnectAddr]
// allows may use an address. The decision's Rule is -1 if no rule names it.
func (e *Egress) Resolved(a netip.Addr, port uint16) Decision {
	p := addrPrefix(a)
	if containedInAny(never, p) {
		return Decision{Rule: -1}
	}
	named := false
	d := e.find(func(r *egressRule, end endpoint) bool {
		named = end.allowsPort(r, port) && containsPrefix(end.net, p)
		return named
	})
	if named {
		return d
	}
	return Decision{!overlapsAny(notGlobal, p), -1}
}

// DistinguishesNames reports whether a host's name matters for a connection to a port, so
// that a name in the protocol must match the name of the look-up.
func (e *Egress) DistinguishesNames(port uint16) bool {
	d := e.Connect(otherHost, port)
	return !d.Allowed || e.deniedName(d.Rule, port) >= 0
}

// deniedName returns the index of a rule after index after that denies a name on a port, or -1.
func (e *Egress) deniedName(after int, port uint16) int {
	for _, r := range slices.Backward(e.rules) {
		if r.index > after && !r.allow && slices.ContainsFunc(r.ends, func(end endpoint) bool {
			return (end.allowsPort(&r, port) || end.proto == "dns" && r.dns) && !end.net.IsValid() && end.host != "*"
		}) {
			return r.index
		}
	}
	return -1
}

// allowsPort reports whether p is a TCP pattern of a rule about connections that contains
// the port.
func (p endpoint) allowsPort(r *egressRule, port uint16) bool {
	return r.connect && p.proto == "tcp" && p.containsPorts(PortRange{port, port})
}

// HostPort decides about connections to a port of localhost that leads to the host. It returns
// false for all other ports of localhost, about which an Egress does not decide.
func (e *Egress) HostPort(port uint16) (d Decision, ok bool) {
	if d, ok = e.host[port]; !ok {
		d.Rule = -1
	}
	return d, ok
}

// decide decides about a resource outside of the jail.
func (e *Egress) decide(r endpoint) Decision {
	switch {
	case r.proto == "dns":
		return e.LookUp(r.host)
	case r.net.IsValid():
		return e.connectPrefix(r.net, r.ports[0].First)
	}
	return e.Connect(r.host, r.ports[0].First)
}
