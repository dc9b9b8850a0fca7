package jail

import (
	"context"
	"net"
	"net/netip"

	"gaol/jail/gateway"
	"gaol/jail/step"
)

// OpenGateway leads the connections of the jail's processes to the host. The jail must have
// been created with Spec.Loopback. The caller closes the gateway before the jail. OpenGateway
// must not be called together with other methods.
func (j *Jail) OpenGateway(c gateway.Config) (*gateway.Gateway, error) {
	g, err := gateway.Open(j.pidfd, c)
	j.gateway = g
	return g, step.Wrap("open", "gateway to hosts outside", err)
}

// Dial connects to a TCP server of the jail's processes, on an address of localhost. The jail
// must have been created with Spec.Loopback. The caller closes the connection before the
// jail, and the jail after Dial has returned.
func (j *Jail) Dial(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	if j.gateway != nil {
		return j.gateway.Dial(ctx, to)
	}
	return gateway.Dial(ctx, j.pidfd, to)
}
