package jail

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp/notify"
)

// routeSockets opens netlink sockets of the route family for one run, and limits their
// number: the kernel charges what such a socket has queued to no cgroup.
type routeSockets struct {
	jail *Jail

	// watched is an epoll instance with all open sockets. It does not keep them open: the
	// kernel removes a socket when its last descriptor is closed, in whichever process.
	watched *os.File // nil before the first
}

// close stops counting. It does not close sockets.
func (r *routeSockets) close() {
	r.watched.Close() // may be nil
	r.watched = nil
}

// open opens the socket that a call of socket(2) asks for. It returns ENOBUFS while the run
// has too many.
func (r *routeSockets) open(c notify.Call) (*os.File, error) {
	if r.watched == nil {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return nil, unix.ENOBUFS
		}
		r.watched = os.NewFile(uintptr(fd), "route sockets")
	}
	n, err := r.count()
	if err != nil || n >= maxRouteSockets() {
		return nil, unix.ENOBUFS
	}
	const typeMask = 0xf // SOCK_TYPE_MASK: the other bits are flags
	f, err := r.jail.netlinkSocket(int(c.Args[1]&(typeMask|unix.SOCK_NONBLOCK)), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, unix.ENOBUFS
	}
	if err := unix.EpollCtl(int(r.watched.Fd()), unix.EPOLL_CTL_ADD, int(f.Fd()), &unix.EpollEvent{}); err != nil {
		f.Close()
		return nil, unix.ENOBUFS
	}
	return f, nil
}

// count returns the number of open sockets: the epoll instance's file in /proc has a line
// for each, see proc(5).
func (r *routeSockets) count() (int, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(r.watched.Fd())))
	return bytes.Count(text, []byte("tfd:")), err
}

// netlinkSocket opens a socket in the jail's network namespace, on a thread without
// capabilities: the kernel remembers those that a netlink socket was opened with.
func (j *Jail) netlinkSocket(kind, protocol int) (f *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f, err = openNetlink(j.pidfd, kind, protocol)
	}()
	<-done
	return f, err
}

// openNetlink opens a socket in the network namespace of a process.
//
// Preconditions: the thread is locked, and is not used again.
func openNetlink(pidfd *os.File, kind, protocol int) (*os.File, error) {
	if err := unix.Setns(int(pidfd.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("setns", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return nil, os.NewSyscallError("capset", err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return os.NewFile(uintptr(fd), "netlink socket"), nil
}

// maxRouteMemory limits what the sockets of a run hold, unless net.core.rmem_max is more
// than half of it: a run may have one in any case.
const maxRouteMemory = 32 << 20

// maxRouteSockets returns how many sockets a run may have at once. The kernel doubles
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

// checkSockets kills the runs of each jail whose sockets hold too much beyond what the runs
// are charged for, and runs that are charged for more than their limit: cgroup v1 enforces
// that for most of what sockets hold, not for all. The runs of a jail share its sockets:
// data that waits for one run can come from another, and sockets that are not accepted
// belong to none.
//
// If the kernel's pages have grown, it kills the runs of each jail whose sockets could be the
// reason: a sender can leave a byte waiting in one socket and send the rest of its page by
// another. The kernel does not report how many pages a socket keeps in memory.
func (w *memoryWatch) checkSockets(pagesGrew bool) {
	for j, runs := range w.byJail(func(s *Spec) bool { return s.Loopback }) {
		use, err := j.socketUse()
		if err != nil {
			continue // the jail is being closed, or the kernel has no such list
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
		if held < maxSocketMemory && !(pagesGrew && use.waiting >= maxWaiting) {
			continue
		}
		for _, p := range runs {
			p.killForMemory()
		}
	}
}

// socketUse is what the sockets of a network namespace hold, in bytes.
type socketUse struct {
	held    int64 // of the kernel's memory, as it counts
	waiting int64 // in TCP connections, to be read or acknowledged, of what the guest has sent
}

// socketUse adds up all TCP and UDP sockets in the jail's network namespace, including those
// that no process has.
func (j *Jail) socketUse() (use socketUse, err error) {
	f, err := j.netlinkSocket(unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return use, err
	}
	defer f.Close()
	err = use.addAll(f)
	return use, err
}

// See sock_diag(7) and linux/inet_diag.h.
const (
	diagRequestLen = 56 // struct inet_diag_req_v2
	diagMessageLen = 72 // struct inet_diag_msg
	diagMemory     = 7  // INET_DIAG_SKMEMINFO: 32-bit numbers
	diagState      = 1  // offset of the state in a message
	diagPeer       = 24 // of the peer's address, 16 bytes
	diagQueues     = 56 // of the bytes to be read, and of those to be acknowledged
	diagUID        = 64 // of the owner's user id
	diagInode      = 68 // of the inode: 0 for a socket that no process has

	socketSize = 4 << 10 // bytes of a TCP socket, charged when it is accepted
)

// CheckSocketLists returns an error if the kernel does not list sockets. Without the lists a
// jail with a network could take memory without limit.
var CheckSocketLists = sync.OnceValue(func() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err == nil {
		f := os.NewFile(uintptr(fd), "netlink socket")
		defer f.Close()
		err = new(socketUse).addAll(f)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNoSocketLists, err)
	}
	return nil
})

var errNoSocketLists = errors.New("the kernel does not list sockets: it needs CONFIG_INET_DIAG and CONFIG_INET_UDP_DIAG, or the modules tcp_diag and udp_diag")

// addAll adds the sockets of all lists that the kernel has.
func (u *socketUse) addAll(f *os.File) error {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			if err := u.addKind(f, family, protocol); err != nil {
				return err
			}
		}
	}
	return nil
}

// addKind requests the list of one kind of sockets, and adds them.
func (u *socketUse) addKind(f *os.File, family, protocol byte) error {
	request := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.SizeofNlMsghdr:]
	body[0], body[1], body[2] = family, protocol, 1<<(diagMemory-1)
	binary.NativeEndian.PutUint32(body[4:], 0xffff_ffff) // in all states
	fd := int(f.Fd())
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		if done, err := u.addPart(answer[:n], protocol); done || err != nil {
			return err
		}
	}
}

// addPart adds the sockets of a part of the kernel's answer. It reports whether that was
// the last part.
func (u *socketUse) addPart(part []byte, protocol byte) (done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(part)
	if err != nil {
		return true, unix.EBADMSG
	}
	for _, m := range messages {
		switch {
		case m.Header.Type == unix.NLMSG_DONE:
			return true, nil
		case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
			return true, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
		case m.Header.Type == unix.SOCK_DIAG_BY_FAMILY && len(m.Data) >= diagMessageLen:
			u.add(m.Data[:diagMessageLen], m.Data[diagMessageLen:], protocol)
		}
	}
	return false, nil
}

// add adds one socket. The buffers of the host's own are bounded, see package gateway, and no
// run can free them.
func (u *socketUse) add(message, attributes []byte, protocol byte) {
	if !isHosts(message) {
		u.held += socketMemory(attributes, protocol)
	}
	if isUnowned(message) {
		u.held += socketSize
	}
	if protocol == unix.IPPROTO_TCP && message[diagState] != unix.BPF_TCP_LISTEN { // the queues of a listening socket hold connections
		received := int64(binary.NativeEndian.Uint32(message[diagQueues:]))
		sent := int64(binary.NativeEndian.Uint32(message[diagQueues+4:]))
		switch {
		case isHosts(message):
			sent = 0 // by the host, for a server
		case !isLocalPeer(message):
			received = 0 // from the host
		}
		u.waiting += received + sent
	}
}

// isLocalPeer reports whether a socket's peer may be one of the guest's own. A peer with
// another address is the host: a gateway accepts those connections.
func isLocalPeer(message []byte) bool {
	var peer netip.Addr
	if message[0] == unix.AF_INET {
		peer = netip.AddrFrom4([4]byte(message[diagPeer:]))
	} else {
		peer = netip.AddrFrom16([16]byte(message[diagPeer:])).Unmap()
	}
	return peer.IsLoopback() || peer.IsUnspecified()
}

// isHosts reports whether a socket is one of a gateway's: all users of a jail have other ids
// on the host than root.
func isHosts(message []byte) bool {
	return binary.NativeEndian.Uint32(message[diagUID:]) == 0 && binary.NativeEndian.Uint32(message[diagInode:]) != 0
}

// isUnowned reports whether a socket is connected and no process has it, as before it is
// accepted. In all other states but these two the kernel keeps less than a socket, or
// nothing.
func isUnowned(message []byte) bool {
	state := message[diagState]
	return (state == unix.BPF_TCP_ESTABLISHED || state == unix.BPF_TCP_CLOSE_WAIT) && binary.NativeEndian.Uint32(message[diagInode:]) == 0
}

// socketMemory returns the memory of one socket, from its attributes.
func socketMemory(attributes []byte, protocol byte) int64 {
	for len(attributes) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(attributes))
		kind := binary.NativeEndian.Uint16(attributes[2:])
		if size < unix.SizeofRtAttr || size > len(attributes) {
			return 0
		}
		value := attributes[unix.SizeofRtAttr:size]
		aligned := (size + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
		attributes = attributes[min(len(attributes), aligned):]
		if kind != diagMemory || len(value) < 4*(unix.SK_MEMINFO_BACKLOG+1) {
			continue
		}
		parts := []int{
			unix.SK_MEMINFO_RMEM_ALLOC, unix.SK_MEMINFO_FWD_ALLOC, unix.SK_MEMINFO_WMEM_QUEUED,
			unix.SK_MEMINFO_OPTMEM, unix.SK_MEMINFO_BACKLOG,
		}
		if protocol == unix.IPPROTO_UDP { // TCP counts what it sends in WMEM_QUEUED, too
			parts = append(parts, unix.SK_MEMINFO_WMEM_ALLOC)
		}
		var held int64
		for _, i := range parts {
			held += int64(binary.NativeEndian.Uint32(value[4*i:]))
		}
		return held
	}
	return 0
}
