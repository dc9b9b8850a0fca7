package runtime

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/internal/egress"
	"gaol/jail/gateway"
)

// egressLimits returns what the runs of a runtime may use together. A connection takes two
// descriptors of this process, and up to 0.8 MB of memory while the other side does not read.
func egressLimits() egress.Limits {
	l := egress.Limits{Connections: 1024, ConnectionsPerSec: 1000, LookupsPerSec: 500}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		l.Connections = int(min(uint64(l.Connections), files.Cur/8)) // leaves most descriptors to the rest
	}
	return l
}

// resolvConf is the guest's /etc/resolv.conf.
var resolvConf = []byte("nameserver " + gateway.Resolver.String() + "\n")

// network is a runtime's way out.
type network struct {
	gateway *gateway.Gateway
	server  *egress.Server
	serving sync.WaitGroup

	mu  sync.Mutex
	err error // why serving ended
}

func (rt *NodeRuntime) openNetwork() (*network, error) {
	plan := rt.opts.plan.Net
	config := gateway.Config{UDP: plan.UDP}
	for _, r := range plan.Local {
		config.TCP = append(config.TCP, gateway.PortRange(r))
	}
	g, err := rt.jail.OpenGateway(config)
	if err != nil {
		return nil, err
	}
	client := egress.NewClient(plan.Egress, egressLimits(), rt.observeEgress)
	n := &network{gateway: g, server: egress.NewServer(egress.Config{
		Identify: func(string, netip.AddrPort, netip.AddrPort) *egress.Client { return client },
		Proxy:    egress.ProxyFromEnvironment(),
	})}
	n.serve(func() error { return n.server.ServeTCP(g.TCP) })
	n.serve(func() error { return n.server.ServeDNS(g.DNS, g.DNSTCP) })
	return n, nil
}

func (n *network) serve(f func() error) {
	n.serving.Go(func() {
		if err := f(); err != nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.err = errors.Join(n.err, err)
		}
	})
}

// close ends all connections. n may be nil.
func (n *network) close() error {
	if n == nil {
		return nil
	}
	err := n.gateway.Close()
	n.server.Close()
	n.serving.Wait()
	return errors.Join(err, n.err)
}

// observeEgress reports what the way out refused to the run that is active. Connections do
// not say which run they belong to, so that nothing is reported while there are several.
func (rt *NodeRuntime) observeEgress(e egress.Event) {
	r := rt.active.only()
	if e.Outcome != egress.Denied || r == nil {
		return
	}
	target := "dns://" + e.Host
	if e.Operation == "connect" {
		host := e.Host
		if host == "" {
			host = e.Address.Addr().String()
		}
		target = "tcp://" + net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
		if e.Why != "" {
			target += ": " + e.Why
		}
	}
	r.denials.AddEgress(e.Operation, target, e.Rule, e.Limit)
}
