package jail

import (
	"maps"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/jail/sockdiag"
	"gaol/jail/step"
)

// maxListeners bounds what Listeners.List returns.
const maxListeners = 1024

// Listeners lists the TCP sockets on which the jail's processes listen.
type Listeners struct {
	socket  *os.File
	firstID int // of the jail's users
}

// OpenListeners opens a list. The jail must have been created with Spec.Loopback. The caller
// closes the list before the jail, and the jail after OpenListeners has returned.
func (j *Jail) OpenListeners() (*Listeners, error) {
	s, err := j.netlinkSocket(unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, step.Wrap("list", "sockets", err)
	}
	return &Listeners{s, j.slot.firstHostID()}, nil
}

// List returns the addresses in order, at most 1,024. If port is not 0, it returns only those
// with that port, whatever else the guest listens on. Those of the host are left out.
func (l *Listeners) List(port uint16) ([]netip.AddrPort, error) {
	found := map[netip.AddrPort]struct{}{} // several sockets can share an address
	q := sockdiag.Query{Protocol: unix.IPPROTO_TCP, States: 1 << unix.BPF_TCP_LISTEN, Port: port}
	err := q.Each(l.socket, func(s sockdiag.Socket) {
		if !isHosts(s, l.firstID) && len(found) < maxListeners {
			found[s.Own()] = struct{}{}
		}
	})
	if err != nil {
		return nil, step.Wrap("list", "sockets", err)
	}
	return slices.SortedFunc(maps.Keys(found), netip.AddrPort.Compare), nil
}

// Close closes the list.
func (l *Listeners) Close() { l.socket.Close() }
