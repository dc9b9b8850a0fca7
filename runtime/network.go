package runtime

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"gaol/internal/egress"
	"gaol/internal/egress/relay"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// NetworkLimits bound the use of external hosts. When a limit is reached, new connections or
// look-ups are refused, and listed as denials with the limit's name, such as "limits.connections".
// A negative field is an error. The defaults apply to Options.Network. In RunOptions.Network zero
// means that only the runtime's limits apply.
type NetworkLimits struct {
	Connections       int   `bounds:"0..1048576,1024"` // open at a time; default 1,024
	ConnectionsPerSec int   `bounds:"0..1048576,1000"` // new ones; default 1,000
	LookupsPerSec     int   `bounds:"0..1048576,500"`  // questions to the resolver; default 500
	BytesIn           int64 `bounds:"0..1PiB"`         // from servers, in all; default: no limit
	BytesOut          int64 `bounds:"0..1PiB"`         // to servers, in all; default: no limit
}

// NetworkQuota bounds the total use of external hosts by several runtimes, such as a tenant's. It is called for each
// use; release ends it. It returns a [*NetworkQuotaError] if a quota is exhausted, for a connection without waiting;
// the run's denials then include the quota's name, such as "quota.egressConnections".
type NetworkQuota = egress.Quota

// NetworkQuotaError names an exhausted quota.
type NetworkQuotaError = egress.QuotaError

// NetworkUse is a use of the network that a [NetworkQuota] can refuse.
type NetworkUse = egress.Use

// The uses.
const (
	NetworkConnection = egress.UseConnection // an open connection
	NetworkConnect    = egress.UseConnect    // a connect without an answer yet, which takes a descriptor
	NetworkLookup     = egress.UseLookup     // a question to the host's resolver without an answer yet, which takes two
)

// network is a runtime's egress.
type network struct {
	gateway *sandbox.Gateway
	server  *egress.Server
	all     *egress.Client // the parent of the runs' clients
	serving errgroup.Group

	mu      sync.Mutex
	err     error                     // why the last connection was not served
	runs    map[uint64]*egress.Client // by Command.OnOwner
	ended   []uint64                  // owners in runs whose run has ended, the oldest first
	unknown *egress.Client            // for sockets that are gone when they are asked about
}

// maxEnded is how many ended runs are kept, to attribute the last packets that they have sent.
const maxEnded = 64

// Messages to the resolver that are read in a second: two for each look-up that is allowed, and not
// less than minMessages. More wait: each takes the host some 0.1 ms, and with 5,000 the requests of
// other runtimes took several times as long.
const (
	messagesPerLookup = 2
	minMessages       = 1000
)

func (rt *NodeRuntime) openNetwork() (*network, error) {
	g, err := rt.sandbox.OpenGateway()
	if err != nil {
		return nil, err
	}
	limits := egress.Limits(rt.opts.Network)
	all := egress.NewClient(rt.opts.plan.Net.Egress, limits, rt.opts.NetworkQuota, egress.Observer{})
	n := &network{gateway: g, all: all, unknown: all, runs: map[uint64]*egress.Client{}}
	n.server = egress.NewServer(egress.Config{
		Identify: n.identify, Own: g.Resolver, Hostname: rt.opts.Hostname,
		Proxy: rt.opts.proxy, ProxyNames: rt.opts.ProxyNames,
		Connections: limits.Connections, Failed: n.failed,
		Relay:          relay.Place{StateDir: sandbox.StateDir, CgroupParent: rt.opts.CgroupParent},
		MessagesPerSec: max(messagesPerLookup*rt.opts.Network.LookupsPerSec, minMessages),
	})
	n.serving.Go(func() error { return n.server.ServeDNS(g.DNS, g.DNSTCP) })
	n.serving.Go(func() error { return n.server.ServeTCP(g.TCP...) })
	return n, nil
}

// failed notes why connections are not served.
func (n *network) failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err // of the last attempt
}

// close ends all connections. n may be nil.
func (n *network) close() error {
	if n == nil {
		return nil
	}
	n.server.Close() // first: it accepts connections until then
	err := n.gateway.Close()
	return errors.Join(err, n.serving.Wait(), n.err)
}

// identify returns the run that has made a socket.
func (n *network) identify(network string, guest, to netip.AddrPort) *egress.Client {
	id, err := n.gateway.Owner(network, guest, to)
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.runs[id]; err == nil && c != nil {
		return c
	}
	return n.unknown
}

// add adds a run that is about to start.
func (n *network) add(owner uint64, c *egress.Client, narrower bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs[owner] = c
	if narrower { // its sockets must not pass for another run's
		n.unknown = n.all.Part(&policy.Egress{}, egress.Limits{}, egress.Observer{})
	}
}

// remove removes a run that has ended, but only when many others have ended after it.
func (n *network) remove(owner uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, owner)
	if len(n.ended) > maxEnded {
		delete(n.runs, n.ended[0])
		n.ended = n.ended[1:]
	}
}

// joinNetwork makes the run a part of the runtime's network, if its permissions allow an external host.
func (p *Process) joinNetwork() {
	n, c, plan := p.rt.network, &p.command, cmp.Or(p.command.Plan, p.rt.opts.plan)
	if plan.Net.Egress == nil {
		return
	}
	p.client = n.all.Part(plan.Net.Egress, egress.Limits(p.egress), egress.Observer{Event: p.observeEgress, Wait: p.waitForFeed})
	local := func(port uint16) policy.Decision {
		d := p.permissions.Decide(policy.Network, "connect", "tcp://localhost:"+strconv.Itoa(int(port)))
		d.Allowed = d.Allowed || plan.Net.UDP // the protocol of a connect is unknown, and UDP may use any port
		return d
	}
	isNarrower := c.Plan != nil
	c.Connect = func(to netip.AddrPort) bool { return n.server.Allows(p.client, to, local) }
	c.OnOwner = func(id uint64) {
		p.owner = id
		n.add(id, p.client, isNarrower)
	}
}

func (u NetworkUsage) minus(v NetworkUsage) NetworkUsage {
	return NetworkUsage{u.Connections - v.Connections, u.Lookups - v.Lookups, u.Denied - v.Denied, u.BytesIn - v.BytesIn, u.BytesOut - v.BytesOut}
}

func (p *Process) waitForFeed() { p.followed().WaitForRoom() }

// observeEgress reports the run's egress.
func (p *Process) observeEgress(e egress.Event) {
	if e.Outcome != egress.Denied {
		if f := p.followed(); f != nil {
			f.Put(ConnectEvent{Connection{
				Host: e.Host, Address: e.Address, Port: e.Port, Rule: policy.RuleName(policy.Network, e.Rule),
				BytesIn: e.BytesIn, BytesOut: e.BytesOut, Duration: e.Duration, Outcome: string(e.Outcome),
			}}, stdio.EventWeight)
		}
		return
	}
	d := policy.Denial{Operation: e.Operation, Target: "dns://" + e.Host}
	if e.Operation == "connect" {
		d.Target = "tcp://" + net.JoinHostPort(cmp.Or(e.Host, e.Address.Addr().String()), strconv.Itoa(int(e.Port)))
		if e.Why != "" {
			d.Target += ": " + e.Why
		}
		if e.Resolved {
			d.Address = e.Address.Addr().String()
		}
	}
	p.denials.AddEgress(d, e.Rule, e.Limit)
}

// maxHostPorts bounds Options.HostPorts: each port takes two sockets.
const maxHostPorts = 64

// checkHostPorts returns the ports of Options.HostPorts.
func checkHostPorts(ports []int) (list []uint16, err error) {
	if len(ports) > maxHostPorts {
		return nil, optionError("HostPorts", "%d ports; the limit is %d", len(ports), maxHostPorts)
	}
	for _, port := range ports {
		switch {
		case port < 1 || port > 65535:
			return nil, optionError("HostPorts", "%d is not a port", port)
		case slices.Contains(list, uint16(port)):
			return nil, optionError("HostPorts", "%d is listed twice", port)
		}
		list = append(list, uint16(port))
	}
	return list, nil
}
