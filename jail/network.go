package jail

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/jail/gateway"
	"gaol/jail/kernfile"
	"gaol/jail/sockdiag"
	"gaol/jail/step"
)

// allowLowPorts lets processes without capabilities listen on the ports below 1024 of the jail's
// network namespace, as they may in a container of Docker.
func (j *Jail) allowLowPorts() error {
	if !j.spec.Loopback {
		return nil
	}
	return kernfile.InNetwork(j.pidfd, func() error {
		return kernfile.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0") // of the thread's namespace, and for IPv6, too
	})
}

// OpenGateway leads the connections of the jail's processes to the host. The jail must have
// been created with Spec.Loopback. The caller closes the gateway before the jail. OpenGateway
// must not be called together with other methods.
func (j *Jail) OpenGateway(c gateway.Config) (*gateway.Gateway, error) {
	g, err := gateway.Open(j.pidfd, c)
	j.gateway = g
	return g, step.Wrap("open", "gateway to external hosts", err)
}

// Dial connects to a TCP server of the jail's processes, on an address of localhost. The jail
// must have been created with Spec.Loopback. For buffer, see [gateway.Dial]. The caller closes the
// connection before the jail, and the jail after Dial has returned.
func (j *Jail) Dial(ctx context.Context, to netip.AddrPort, buffer int) (*net.TCPConn, error) {
	if j.gateway != nil {
		return j.gateway.Dial(ctx, to, buffer)
	}
	return gateway.Dial(ctx, j.pidfd, to, buffer)
}

// maxListeners bounds the result of Listeners.List.
const maxListeners = 1024

// Listeners returns the TCP addresses on which the jail's processes listen, in order, at most 1,024.
// If port is not 0, it returns only addresses with that port. It omits the host's listeners. The jail
// must have been created with Spec.Loopback, and be closed after Listeners has returned.
func (j *Jail) Listeners(port uint16) ([]netip.AddrPort, error) {
	found := map[netip.AddrPort]struct{}{} // several sockets can share an address
	err := j.eachTCP(port, 1<<unix.BPF_TCP_LISTEN, func(s sockdiag.Socket) {
		if len(found) < maxListeners {
			found[s.Own()] = struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(found), netip.AddrPort.Compare), nil
}

// eachTCP calls f for each TCP socket of a guest with a port, or any port if that is 0, and one of the states.
func (j *Jail) eachTCP(port uint16, states uint32, f func(sockdiag.Socket)) error {
	s, err := j.openSockdiag()
	if err == nil {
		defer s.Close()
		err = sockdiag.Query{Protocol: unix.IPPROTO_TCP, States: states, Port: port}.Each(s, func(s sockdiag.Socket) {
			if !isHosts(s, j.identity.ID()) {
				f(s)
			}
		})
	}
	return step.Wrap("list", "sockets", err)
}
