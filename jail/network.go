package jail

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/gateway"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/seccomp/notify"
	"gaol/jail/sockdiag"
	"gaol/jail/step"
)

// allowLowPorts lets processes without capabilities listen on the ports below 1024 of the jail's
// network namespace, as they may in a container of Docker.
func (j *Jail) allowLowPorts() error {
	if !j.spec.Loopback || j.spec.omits(kernel.LowPorts) {
		return nil
	}
	return kernfile.InNetwork(j.pidfd, func() error {
		return kernfile.WriteFile(kernel.FirstPortFile, "0") // of the thread's namespace, and for IPv6, too
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
	if kernel.Probe().Lacks(kernel.SocketLists) {
		list, err := sockdiag.Listeners(port, func(uid int) bool { return isGuests(uid, j.identity.ID()) })
		for _, a := range list[:min(len(list), maxListeners)] {
			found[a] = struct{}{}
		}
		return slices.SortedFunc(maps.Keys(found), netip.AddrPort.Compare), step.Wrap("list", "sockets", err)
	}
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

// routeSockets opens netlink sockets of the route family for one run, and limits their
// number: the kernel charges the queue of such a socket to no cgroup.
type routeSockets struct {
	jail *Jail

	// watched is an epoll instance with all open sockets. It does not keep them open: the
	// kernel removes a socket when its last descriptor is closed, in whichever process.
	watched *os.File // nil before the first
}

// open opens the socket that a call of socket(2) asks for. It returns ENOBUFS while the run
// has too many.
func (r *routeSockets) open(c notify.Call) (socket, _ *os.File, err error) {
	if r.watched == nil {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return nil, nil, unix.ENOBUFS
		}
		r.watched = os.NewFile(uintptr(fd), "route sockets")
	}
	list, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(r.watched.Fd()))) // lists each socket in a line, see proc(5)
	if err != nil || bytes.Count(list, []byte("tfd:")) >= maxRouteSockets() {
		return nil, nil, unix.ENOBUFS
	}
	const typeMask = 0xf // SOCK_TYPE_MASK: the other bits are flags
	if socket, err = r.jail.routeSocket(int(c.Args[1] & (typeMask | unix.SOCK_NONBLOCK))); err == nil {
		err = unix.EpollCtl(int(r.watched.Fd()), unix.EPOLL_CTL_ADD, int(socket.Fd()), &unix.EpollEvent{})
	}
	if err != nil {
		err = unix.ENOBUFS
	}
	return socket, nil, err
}

// routeSocket opens a socket in the jail's network namespace, on a thread without
// capabilities: the kernel remembers the capabilities that opened a netlink socket.
func (j *Jail) routeSocket(kind int) (f *os.File, err error) {
	err = kernfile.InNetwork(j.pidfd, func() error {
		if err := kernfile.DropCapabilities(); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_NETLINK, kind|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		f = os.NewFile(uintptr(fd), "netlink socket")
		return nil
	})
	return f, err
}

// maxRouteMemory limits the memory of a run's sockets, unless net.core.rmem_max is more than
// half of it: a run may always open one.
const maxRouteMemory = 32 << 20

// maxRouteSockets returns the maximum number of open sockets of a run. The kernel doubles
// the size of a receive buffer, and allows up to net.core.rmem_max (socket(7)).
var maxRouteSockets = sync.OnceValue(func() int {
	const most, usual = 16, 212_992
	size := usual
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); errors.Join(err, bad) == nil && n > 0 {
		size = n
	}
	return min(most, max(1, maxRouteMemory/(2*size)))
})

// checkSockets kills the runs of each jail whose sockets hold too much uncharged memory, and
// runs that are charged for more than their limit: cgroup v1 enforces that for most memory of
// sockets, not for all. The runs of a jail share its sockets: data that waits for one run can
// come from another, and sockets that are not accepted belong to none.
//
// If the kernel's pages have grown, it records the data that waits in the sockets of each
// jail, for checkStalled.
func (w *memoryWatch) checkSockets(pagesGrew bool) {
	for j, runs := range w.byJail(func(s *Spec) bool { return s.Loopback }) {
		use, err := j.socketUse()
		if err != nil {
			continue // the jail is being closed, or the kernel does not support the list
		}
		if pagesGrew && w.suspects[j] == nil && use.waiting() >= maxWaiting {
			w.suspects[j] = &suspect{use, time.Now()}
		}
		held := use.held
		for _, p := range runs {
			charged, err := p.group.SocketMemory()
			if err != nil {
				charged = p.limits.Memory // it has ended
			}
			if limit := p.limits.Memory; limit > 0 && charged > limit+maxSocketMemory {
				p.killForMemory()
			}
			held -= charged
		}
		if held < maxSocketMemory {
			continue
		}
		for _, p := range runs {
			p.killForMemory()
		}
	}
}

// suspect is a jail whose sockets could be the reason why the kernel's pages have grown.
type suspect struct {
	use   socketUse
	since time.Time
}

// stallTime is how long data must wait to count as stalled.
const stallTime = 100 * time.Millisecond

// checkStalled kills the runs of each suspect whose data still waits: a sender can leave a byte
// waiting in one socket and send the rest of its page by another. The kernel does not report how
// many pages a socket keeps in memory. Data that moves on is no danger, as in any upload.
func (w *memoryWatch) checkStalled() {
	jails := w.byJail(func(*Spec) bool { return true })
	for j, before := range w.suspects {
		runs := jails[j]
		if len(runs) > 0 && time.Since(before.since) < stallTime {
			continue
		}
		delete(w.suspects, j)
		if use, err := j.socketUse(); err != nil || use.stalledSince(before.use) < maxWaiting {
			continue
		}
		for _, p := range runs {
			p.killForMemory()
		}
	}
}

// socketUse is the memory and the queues of the sockets of a network namespace.
type socketUse struct {
	firstID int // of the jail's users

	held   int64                // bytes of the kernel's memory, as it counts
	queues map[connection]queue // of TCP
	hosts  []connection         // from the host to the guest's servers, as the servers list them
}

// connection is a TCP connection as one side sees it.
type connection struct{ own, peer netip.AddrPort }

// queue counts the bytes that the guest has sent and the other side has not read.
type queue struct {
	received, sent int64 // to be read, and to be acknowledged
	read, acked    int64 // so far
}

// waiting returns how many bytes wait.
func (u *socketUse) waiting() (n int64) {
	for _, q := range u.queues {
		n += q.received + q.sent
	}
	return n
}

// stalledSince returns how many bytes may have waited ever since an earlier look: less than what
// waited then has been read.
func (u *socketUse) stalledSince(before socketUse) (n int64) {
	for c, q := range u.queues {
		old := before.queues[c] // zero for a new connection
		if q.read-old.read < old.received {
			n += min(q.received, old.received)
		}
		if q.acked-old.acked < old.sent {
			n += min(q.sent, old.sent)
		}
	}
	return n
}

const socketSize = 4 << 10 // bytes of a TCP socket, charged when it is accepted

// socketUse adds up all TCP and UDP sockets in the jail's network namespace, including those
// that no process has.
func (j *Jail) socketUse() (use socketUse, err error) {
	f, err := j.openSockdiag()
	if err != nil {
		return use, err
	}
	defer f.Close()
	use.firstID, _ = j.HostIDs()
	err = use.addAll(f, 0)
	return use, err
}

// openSockdiag opens a socket for queries in the jail's network namespace.
func (j *Jail) openSockdiag() (s *nl.SocketHandle, err error) {
	err = kernfile.InNetwork(j.pidfd, func() (err error) {
		s, err = sockdiag.Open()
		return err
	})
	return s, err
}

// CheckSocketLists returns an error if the kernel does not list sockets. Without the lists a
// jail with a network could take memory without limit.
func CheckSocketLists() error {
	_, err := socketLists()
	return err
}

var socketLists = kernfile.Once(func() (struct{}, error) {
	f, err := sockdiag.Open()
	if err == nil {
		defer f.Close()
		err = new(socketUse).addAll(f, 1<<unix.BPF_TCP_LISTEN) // connections take the kernel milliseconds to list
	}
	if err != nil {
		return struct{}{}, fmt.Errorf("the kernel does not list sockets: it needs CONFIG_INET_DIAG and CONFIG_INET_UDP_DIAG, or the modules tcp_diag and udp_diag: %w", err)
	}
	return struct{}{}, nil
})

// addAll adds the sockets of all lists that the kernel has, in all states if states is 0.
func (u *socketUse) addAll(f *nl.SocketHandle, states uint32) error {
	for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		q := sockdiag.Query{Protocol: protocol, States: states, Memory: true}
		if err := q.Each(f, func(s sockdiag.Socket) { u.add(s, protocol) }); err != nil {
			return err
		}
	}
	u.subtractHosts()
	return nil
}

// subtractHosts omits data that the host has sent to the guest's servers.
func (u *socketUse) subtractHosts() {
	for _, c := range u.hosts {
		if q, ok := u.queues[c]; ok {
			q.received = 0
			u.queues[c] = q
		}
	}
}

// add adds one socket. The buffers of the host's own are bounded, see package gateway, and no
// run can free them.
func (u *socketUse) add(s sockdiag.Socket, protocol byte) {
	if !isHosts(s, u.firstID) {
		u.held += socketMemory(s, protocol)
	}
	if isUnowned(s) {
		u.held += socketSize
	}
	if protocol != unix.IPPROTO_TCP || s.State() == unix.BPF_TCP_LISTEN { // the queues of a listening socket hold connections
		return
	}
	q := queue{s.ReceiveQueue(), s.SendQueue(), s.BytesReceived() - s.ReceiveQueue(), s.BytesAcked()}
	switch peer := s.Peer(); {
	case isHosts(s, u.firstID):
		q.sent = 0 // by the host
		u.hosts = append(u.hosts, connection{own: peer, peer: s.Own()})
	case !peer.Addr().IsLoopback() && !peer.Addr().IsUnspecified():
		q.received = 0 // from the host: a gateway accepts connections to other addresses
	}
	if u.queues == nil {
		u.queues = map[connection]queue{}
	}
	u.queues[connection{s.Own(), s.Peer()}] = q
}

// isHosts reports whether a socket is one of the host's, which a gateway or Dial has opened, or of a
// subprocess that carries connections: all users of a jail, of which firstID is the first on the host,
// have other ids.
func isHosts(s sockdiag.Socket, firstID int) bool {
	uid, owned := s.UID()
	return owned && !isGuests(int(uid), firstID)
}

// isGuests reports whether a user is one of the jail whose first id is firstID.
func isGuests(uid, firstID int) bool { return uid >= firstID && uid < firstID+mounts.IDsPerJail }

// isUnowned reports whether a socket is connected and no process has it, as before it is
// accepted. In all other states but these two the kernel keeps less than a socket, or
// nothing.
func isUnowned(s sockdiag.Socket) bool {
	_, owned := s.UID()
	return !owned && (s.State() == unix.BPF_TCP_ESTABLISHED || s.State() == unix.BPF_TCP_CLOSE_WAIT)
}

// socketMemory returns the memory of one socket.
func socketMemory(s sockdiag.Socket, protocol byte) (held int64) {
	value := s.Attribute(sockdiag.Memory, 4*(unix.SK_MEMINFO_BACKLOG+1))
	if value == nil {
		return 0
	}
	parts := []int{
		unix.SK_MEMINFO_RMEM_ALLOC, unix.SK_MEMINFO_FWD_ALLOC, unix.SK_MEMINFO_WMEM_QUEUED,
		unix.SK_MEMINFO_OPTMEM, unix.SK_MEMINFO_BACKLOG,
	}
	if protocol == unix.IPPROTO_UDP { // TCP's send queue is in WMEM_QUEUED, too
		parts = append(parts, unix.SK_MEMINFO_WMEM_ALLOC)
	}
	for _, i := range parts {
		held += int64(binary.NativeEndian.Uint32(value[4*i:]))
	}
	return held
}
