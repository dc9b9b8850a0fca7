package gateway

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/sockdiag"
)

// ErrNoOwner is the error of [Gateway.Owner] for a socket that is gone, or that several
// processes could have used.
var ErrNoOwner = errors.New("no socket of the guest, or several")

// diag is a netlink socket in the namespace, for one question at a time.
type diag struct {
	mu   sync.Mutex
	file *os.File
}

// openDiag opens a socket in the thread's namespace.
func openDiag() (*diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return &diag{file: os.NewFile(uintptr(fd), "socket of sock_diag")}, nil
}

func (d *diag) close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.file.Close()
}

// Owner returns the id of the v2 cgroup in which the guest has made the socket at its end of a
// connection, or of a datagram. Network is tcp or udp, and to is where the guest sent it.
func (g *Gateway) Owner(network string, guest, to netip.AddrPort) (cgroup uint64, err error) {
	g.diag.mu.Lock()
	defer g.diag.mu.Unlock()
	owners := map[uint64]struct{}{}
	add := func(s sockdiag.Socket) {
		if cgroup = 0; len(s.Attribute(sockdiag.Cgroup, 8)) > 0 {
			cgroup = binary.NativeEndian.Uint64(s.Attribute(sockdiag.Cgroup, 8))
		}
		owners[cgroup] = struct{}{}
	}
	if network == "udp" {
		// Several sockets can share the port, and which of them has sent a datagram is unknown.
		err = sockdiag.Query{Protocol: unix.IPPROTO_UDP, Port: guest.Port()}.Each(g.diag.file, add)
	} else {
		var s sockdiag.Socket
		if s, err = sockdiag.Connection(g.diag.file, guest, to); err == nil {
			add(s)
		}
	}
	if errors.Is(err, os.ErrNotExist) || err == nil && (len(owners) != 1 || cgroup == 0) {
		err = ErrNoOwner
	}
	return cgroup, err
}
