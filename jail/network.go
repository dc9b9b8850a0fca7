package jail

import (
	"gaol/jail/gateway"
	"gaol/jail/step"
)

// OpenGateway leads the connections of the jail's processes to the host. The jail must have
// been created with Spec.Loopback. The caller closes the gateway before the jail.
func (j *Jail) OpenGateway(c gateway.Config) (*gateway.Gateway, error) {
	g, err := gateway.Open(j.pidfd, c)
	return g, step.Wrap("open", "gateway to hosts outside", err)
}
