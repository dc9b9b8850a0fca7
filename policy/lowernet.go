package policy

import (
	"errors"
	"slices"
	"strconv"
)

// network lowers network: no internet sockets, or some on the loopback device.
func (l *lowering) network() {
	before := len(l.errs)
	if l.p.Network.Default == Allow {
		l.rejectUnsupported(ruleError(Network, -1, "", `default "deny" with rules for localhost`))
	}
	for _, e := range l.p.entries(Network) {
		l.checkHost(e, l.p.Network.Rules[e.rule].Mode)
	}
	if len(l.errs) == before {
		l.tcp()
		l.udp()
		l.plan.Net.Inet = l.plan.Net.TCP || l.plan.Net.UDP
	}
}

// checkHost rejects hosts outside the jail, and addresses of the loopback device: the
// kernel checks only ports, so that a rule for one address would apply to all.
func (l *lowering) checkHost(e entry, mode Mode) {
	end, _ := parseEndpoint(e.text)
	switch {
	case end.proto != "dns" && end.host != localhost && isLocal(end.host):
		l.reject(entryError(e, "the kernel checks ports, not addresses of the loopback device", end.proto+"://localhost:"+end.port))
	case mode == Allow && end.proto == "dns":
		l.rejectUnsupported(entryError(e, "", "leave it out: localhost needs no look-up"))
	case mode == Allow && end.host != localhost:
		l.rejectUnsupported(entryError(e, "", end.proto+"://localhost:*"))
	}
}

func (l *lowering) rejectUnsupported(err *RuleError) {
	err.Why, err.Err = "there is no way out of the sandbox yet", errors.ErrUnsupported
	l.reject(err)
}

// tcp decides every named port, and one unnamed port that represents all others.
func (l *lowering) tcp() {
	ports, other := portsOf(l.p)
	listens, connects := l.decidePort("listen", "tcp", other), l.decidePort("connect", "tcp", other)
	l.plan.Net.TCP = listens.Allowed
	l.plan.Net.AnyPort = connects.Allowed
	for _, port := range append(ports, other) {
		fetch, connect, listen := l.decidePort("fetch", "tcp", port), l.decidePort("connect", "tcp", port), l.decidePort("listen", "tcp", port)
		if fetch.Allowed != connect.Allowed { // every fetch begins with a connect
			l.reject(ruleError(Network, max(fetch.Rule, connect.Rule), "fetch and connect cannot be distinguished", "both in one rule"))
		}
		switch {
		case listen.Allowed != listens.Allowed:
			l.reject(ruleError(Network, max(listen.Rule, listens.Rule), "a socket that listens without being bound gets any port", "listen on tcp://localhost:*"))
		case connect.Allowed && !listen.Allowed:
			l.reject(ruleError(Network, connect.Rule, "listen on a port cannot be distinguished from listen on sockets within the jail", `operations "connect" and "fetch", and a rule for "listen" on tcp://localhost:*`))
		case connects.Allowed && !connect.Allowed:
			l.reject(ruleError(Network, connect.Rule, "Landlock cannot deny a port and allow the others", "rules that allow the ports wanted"))
		case connect.Allowed && !connects.Allowed:
			l.plan.Net.Ports = append(l.plan.Net.Ports, port)
		}
	}
}

// udp allows everything or nothing: no kernel hook checks where a datagram goes.
func (l *lowering) udp() {
	ports, other := portsOf(l.p)
	all := l.decidePort("connect", "udp", other)
	l.plan.Net.UDP = all.Allowed
	for _, port := range append(ports, other) {
		for _, op := range []Operation{"fetch", "connect", "listen"} {
			if d := l.decidePort(op, "udp", port); d.Allowed != all.Allowed {
				l.reject(ruleError(Network, max(d.Rule, all.Rule), "UDP can only be allowed or denied as a whole", `"fetch", "connect" and "listen" on udp://localhost:*, or none`))
			}
		}
	}
}

// decidePort decides an operation on a port of localhost.
func (l *lowering) decidePort(op Operation, proto string, port uint16) Decision {
	return l.p.Decide(Network, op, proto+"://localhost:"+strconv.Itoa(int(port)))
}

// portsOf returns the ports that the permissions name, in order, and one that they do not.
func portsOf(permissions ...Permissions) (named []uint16, other uint16) {
	for _, p := range permissions {
		for _, e := range p.entries(Network) {
			end, _ := parseEndpoint(e.text)
			if n, err := strconv.ParseUint(end.port, 10, 16); err == nil {
				named = append(named, uint16(n))
			}
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	for other = 65535; slices.Contains(named, other); {
		other--
	}
	return named, other
}
