package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// network lowers network: no internet sockets, some on the loopback device, or egress, too.
func (l *lowering) network() {
	before := len(l.errs)
	for i, r := range l.p.Network.Rules {
		if r.decides("fetch") != r.decides("connect") { // every fetch begins with a connect
			l.reject(ruleError(Network, i, "fetch and connect cannot be distinguished", "both in one rule"))
		}
	}
	for _, e := range l.p.entries(Network) {
		l.checkHost(e, l.p.Network.Rules[e.rule])
	}
	if len(l.errs) > before {
		return
	}
	if l.leavesJail() || (l.inGateway() || len(l.w.HostPorts) > 0) && l.allowsSome() {
		l.plan.Net.Egress = NewEgress(l.p.Network)
	}
	l.tcp()
	l.hostPorts()
	l.udp()
	l.plan.Net.Inet = l.plan.Net.TCP || l.plan.Net.UDP || l.plan.Net.Egress != nil
	l.compareRuntime()
}

// checkHost rejects patterns that neither the kernel nor egress can enforce. The kernel checks only
// ports of localhost, so that a rule for one of its addresses would apply to all.
func (l *lowering) checkHost(e entry, r Rule) {
	end, _ := parseEndpoint(e.text)
	port := e.text[strings.LastIndexByte(e.text, ':')+1:]
	local := port
	if r.Mode == Allow && (end.proto == "udp" || r.decides("listen")) {
		local = "*" // see udp and tcp, which reject single ports
	}
	switch {
	case end.proto == "dns" || end.host == localhost || end.host == "*":
	case end.isLocal():
		l.reject(entryError(e, "the kernel checks ports, not addresses of the loopback device", end.proto+"://localhost:"+local))
	case r.Mode == Deny:
	case end.proto == "udp":
		l.reject(entryError(e, "UDP does not leave the sandbox", "tcp://"+end.host+":"+port))
	case end.net.IsValid() && containedInAny(never, end.net):
		l.reject(entryError(e, "the host's own addresses and group addresses are never reached", "leave it out"))
	case !r.decides("connect"):
		l.reject(entryError(e, "guests listen on localhost only", "tcp://localhost:"+local))
	}
}

// leavesJail reports whether a rule may allow anything outside of the jail.
func (l *lowering) leavesJail() bool {
	if l.p.Network.Default == Allow {
		return true
	}
	return slices.ContainsFunc(l.p.entries(Network), func(e entry) bool {
		end, _ := parseEndpoint(e.text)
		r := l.p.Network.Rules[e.rule]
		op := Operation("connect")
		if end.proto == "dns" {
			op = "dns"
		}
		return r.Mode == Allow && end.proto != "udp" && !end.isLocal() && r.decides(op)
	})
}

// tcp decides all ports of localhost.
func (l *lowering) tcp() {
	ports, other := portsOf(l.w.HostPorts, l.p)
	rest := l.decidePort("tcp", other)
	l.plan.Net.TCP = rest.listen.Allowed
	l.plan.Net.AnyPort = rest.connect.Allowed
	if l.plan.Net.Egress != nil {
		l.localPorts(ports)
		return
	}
	for _, r := range ports {
		a := l.decidePort("tcp", r.First)
		switch {
		case a.listen.Allowed != rest.listen.Allowed:
			l.reject(ruleError(Network, max(a.listen.Rule, rest.listen.Rule), "a socket that listens without being bound gets any port", "listen on tcp://localhost:*"))
		case a.connect.Allowed && !a.listen.Allowed:
			l.reject(ruleError(Network, a.connect.Rule, "listen on a port cannot be distinguished from listen on sockets within the jail", `operations "connect" and "fetch", and a rule for "listen" on tcp://localhost:*`))
		case rest.connect.Allowed && !a.connect.Allowed:
			l.reject(ruleError(Network, a.connect.Rule, "Landlock cannot deny a port and allow the others", "rules that allow the ports wanted"))
		case a.connect.Allowed && !rest.connect.Allowed:
			l.allowPorts(r, a.connect.Rule)
		}
	}
}

// maxPorts bounds the ports for Landlock, which needs a rule for each port.
const maxPorts = 4096

func (l *lowering) allowPorts(r PortRange, rule int) {
	if len(l.plan.Net.Ports)+int(r.Last-r.First) >= maxPorts {
		l.reject(ruleError(Network, rule, fmt.Sprintf("Landlock needs a rule for each port, and gaol makes at most %d", maxPorts), "tcp://localhost:*"))
		return
	}
	for port := int(r.First); port <= int(r.Last); port++ {
		l.plan.Net.Ports = append(l.plan.Net.Ports, uint16(port))
	}
}

// localPorts decides which ports of localhost a jail with egress reaches. A port on
// which nothing may listen refuses connections: that is how listen is denied.
func (l *lowering) localPorts(ports []PortRange) {
	local := &l.plan.Net.Local
	for _, r := range ports {
		a := l.decidePort("tcp", r.First)
		last := len(*local) - 1
		switch {
		case !a.connect.Allowed || !a.listen.Allowed || slices.Contains(l.w.HostPorts, r.First):
		case last >= 0 && (*local)[last].Last == r.First-1:
			(*local)[last].Last = r.Last
		default:
			*local = append(*local, r)
		}
	}
}

// hostPorts decides about the ports that lead to the host. The guest's own servers on these ports are
// not reached.
func (l *lowering) hostPorts() {
	n := &l.plan.Net
	if n.Egress == nil {
		return
	}
	n.Egress.host = map[uint16]Decision{}
	for _, port := range l.w.HostPorts {
		a := l.decidePort("tcp", port)
		n.Egress.host[port] = a.connect
		if a.connect.Allowed {
			n.Host = append(n.Host, port)
		}
	}
}

// inGateway reports whether this is a run in a jail with egress. The gateway then decides about
// its connections, even if the run may not use egress.
func (l *lowering) inGateway() bool { return l.outer != nil && l.outer.Net.Egress != nil }

// allowsSome reports whether a rule of the network scope, or its default, allows something.
func (l *lowering) allowsSome() bool {
	s := l.p.Network
	return s.Default == Allow || slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Mode == Allow })
}

// compareRuntime rejects a run whose ports of localhost differ from its runtime's, unless the run
// may use none: in a jail with egress, one BPF program decides about these ports for all runs. Runs
// without IP sockets cannot use localhost. Ports that lead to the host may differ, because egress
// decides about them.
func (l *lowering) compareRuntime() {
	if !l.inGateway() || !l.plan.Net.Inet {
		return
	}
	switch own, jail := &l.plan.Net, l.outer.Net; {
	case own.UDP == jail.UDP && slices.Equal(own.Local, jail.Local):
	case !own.UDP && len(own.Local) == 0 && len(own.Host) == 0:
		own.NoLocalhost = true
	default:
		l.reject(ruleError(Network, -1, "all runs of a runtime with egress have the same ports of localhost, or none", "the runtime's rules for localhost, or none"))
	}
}

// udp allows everything or nothing on localhost: no kernel hook checks where a datagram
// goes.
func (l *lowering) udp() {
	ports, other := portsOf(nil, l.p)
	rest := l.decidePort("udp", other)
	l.plan.Net.UDP = rest.connect.Allowed
	for _, r := range ports {
		a := l.decidePort("udp", r.First)
		for _, d := range []Decision{a.connect, a.listen} {
			if d.Allowed != rest.connect.Allowed {
				l.reject(ruleError(Network, max(d.Rule, rest.connect.Rule), "UDP can only be allowed or denied as a whole", `"fetch", "connect" and "listen" on udp://localhost:*, or none`))
			}
		}
	}
}

// portDecisions are the decisions about one port of localhost.
type portDecisions struct{ connect, listen Decision }

func (l *lowering) decidePort(proto string, port uint16) portDecisions {
	resource := proto + "://localhost:" + strconv.Itoa(int(port))
	ask := func(op Operation) Decision { return l.p.Decide(Network, op, resource) }
	return portDecisions{ask("connect"), ask("listen")}
}

// portsOf returns all ports, in order and as ranges that no pattern divides, and a port that the permissions do not
// name, or any port if they name all. Each of the single ports is a range of its own.
func portsOf(single []uint16, permissions ...Permissions) (ranges []PortRange, other uint16) {
	var named []PortRange
	starts := []int{1, 65536}
	for _, port := range single {
		starts = append(starts, int(port), int(port)+1)
	}
	for _, p := range permissions {
		for _, e := range p.entries(Network) {
			end, _ := parseEndpoint(e.text)
			for _, r := range end.ports {
				if r != allPorts {
					named = append(named, r)
					starts = append(starts, int(r.First), int(r.Last)+1)
				}
			}
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for i, start := range starts[:len(starts)-1] {
		r := PortRange{uint16(start), uint16(starts[i+1] - 1)}
		ranges = append(ranges, r)
		if other == 0 && !(endpoint{ports: named}).containsPorts(r) {
			other = r.First
		}
	}
	return ranges, max(other, 1)
}
