package client

import (
	"context"
	"net/netip"

	"gaol/runtime/requestjson"
)

// Listeners returns the TCP addresses in the sandbox on which guests listen, in order, as
// [runtime.NodeRuntime.Listeners] does.
func (sb *Sandbox) Listeners(ctx context.Context) ([]netip.AddrPort, error) {
	var list struct {
		Listeners []struct {
			Address netip.Addr
			Port    uint16
		}
	}
	if err := sb.c.do(ctx, "listListeners", sb.in(), &list); err != nil {
		return nil, wrap("listeners", err)
	}
	var addresses []netip.AddrPort
	for _, l := range list.Listeners {
		addresses = append(addresses, netip.AddrPortFrom(l.Address, l.Port))
	}
	return addresses, nil
}

// WaitForListener waits until a guest listens on a port so that Dial can connect. It ends with ctx
// or the sandbox.
func (sb *Sandbox) WaitForListener(ctx context.Context, port uint16) error {
	for {
		var state struct{ Listening bool }
		if err := sb.c.do(ctx, "waitForPort", requestjson.InPort{InSandbox: sb.in(), Port: port}, &state); err != nil {
			return wrap("wait for listener", err)
		}
		if state.Listening {
			return nil
		}
	}
}
