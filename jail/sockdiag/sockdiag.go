package sockdiag

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// See linux/inet_diag.h.
const (
	requestLen = 56 // struct inet_diag_req_v2
	tcpRequest = 60 // struct inet_diag_req
	messageLen = 72 // struct inet_diag_msg

	// tcpSockets, TCPDIAG_GETSOCK, lists the TCP sockets of both families. A list of one family takes as
	// long, because the kernel goes through the connections of the whole machine.
	tcpSockets = 18

	offState  = 1  // in a message
	offID     = 4  // of its struct inet_diag_sockid
	offQueues = 56 // of the bytes to be read, and of those to be acknowledged
	offUID    = 64
	offInode  = 68

	offRequestID = 8 // in a request
)

// Attributes of a socket.
const (
	Info   = 2  // INET_DIAG_INFO: struct tcp_info, for TCP
	Memory = 7  // INET_DIAG_SKMEMINFO: 32-bit numbers, see unix.SK_MEMINFO_RMEM_ALLOC
	Cgroup = 21 // INET_DIAG_CGROUP_ID: a 64-bit number, since Linux 5.9
)

// Open opens a netlink socket for queries in the thread's network namespace.
func Open() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return os.NewFile(uintptr(fd), "socket of sock_diag"), nil
}

// Query selects sockets of the network namespace of a netlink socket.
type Query struct {
	Protocol byte // unix.IPPROTO_TCP or unix.IPPROTO_UDP

	States uint32 // a bit for each; 0: all
	Port   uint16 // the sockets' own; 0: any
	Memory bool   // the sockets have the attributes Info and Memory
}

// Each calls f for each socket of the list. A Socket is valid until f returns.
func (q Query) Each(netlink *os.File, f func(Socket)) error {
	id := binary.BigEndian.AppendUint16(nil, q.Port)
	if q.Protocol == unix.IPPROTO_TCP {
		request := q.request(tcpSockets, tcpRequest, unix.NLM_F_DUMP)
		request.body[3] = q.attributes()
		copy(request.body[4:], id)
		binary.NativeEndian.PutUint32(request.body[tcpRequest-8:], q.states())
		return request.send(netlink, f)
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err := q.ofFamily(family, unix.NLM_F_DUMP, id).send(netlink, f); err != nil {
			return err
		}
	}
	return nil
}

// Connection returns the socket of a TCP connection. The error is fs.ErrNotExist if there is
// none.
func Connection(netlink *os.File, own, peer netip.AddrPort) (s Socket, err error) {
	family := byte(unix.AF_INET)
	if peer.Addr().Is6() {
		family = unix.AF_INET6
	}
	var id [36]byte
	binary.BigEndian.PutUint16(id[:], own.Port())
	binary.BigEndian.PutUint16(id[2:], peer.Port())
	copy(id[4:20], own.Addr().AsSlice())
	copy(id[20:36], peer.Addr().AsSlice())
	err = Query{Protocol: unix.IPPROTO_TCP}.ofFamily(family, 0, id[:]).send(netlink, func(found Socket) { s = found.clone() })
	// Without such a connection the kernel returns a listening socket.
	if err == unix.ENOENT || err == nil && (s.Own() != own || s.Peer() != peer) {
		err = os.ErrNotExist
	}
	return s, err
}

// request is a message to the kernel.
type request struct {
	message []byte
	body    []byte // of message
	isList  bool   // the kernel answers with a list, not with one message
}

func (q Query) request(kind uint16, size int, flags uint16) request {
	m := make([]byte, unix.SizeofNlMsghdr+size)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|flags)
	return request{m, m[unix.SizeofNlMsghdr:], flags != 0}
}

// ofFamily returns a request for sockets of one address family.
func (q Query) ofFamily(family byte, flags uint16, id []byte) request {
	r := q.request(unix.SOCK_DIAG_BY_FAMILY, requestLen, flags)
	r.body[0], r.body[1], r.body[2] = family, q.Protocol, q.attributes()
	binary.NativeEndian.PutUint32(r.body[4:], q.states())
	copy(r.body[offRequestID:], id)
	binary.NativeEndian.PutUint64(r.body[requestLen-8:], 0xffff_ffff_ffff_ffff) // INET_DIAG_NOCOOKIE
	return r
}

func (q Query) attributes() byte {
	if q.Memory {
		return 1<<(Info-1) | 1<<(Memory-1)
	}
	return 0
}

func (q Query) states() uint32 {
	if q.States == 0 {
		return 0xffff_ffff
	}
	return q.States
}

// answers are buffers for parts of an answer. Each guest's connection and question takes one.
var answers = sync.Pool{New: func() any { return new([32 << 10]byte) }} // as large as a part of a list, see netlink_dump

func (r request) send(netlink *os.File, f func(Socket)) error {
	fd := int(netlink.Fd())
	if err := unix.Sendto(fd, r.message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := answers.Get().(*[32 << 10]byte)
	defer answers.Put(answer)
	for {
		n, _, err := unix.Recvfrom(fd, answer[:], 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		if done, err := Parse(answer[:n], f); done || err != nil || !r.isList {
			return err
		}
	}
}

var errMessage = errors.New("sock_diag: a malformed message")

// Parse calls f for the sockets of a part of the kernel's answer. It reports whether that was
// the last part.
func Parse(part []byte, f func(Socket)) (done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(part)
	if err != nil {
		return true, errMessage
	}
	for _, m := range messages {
		switch {
		case m.Header.Type == unix.NLMSG_DONE:
			return true, nil
		case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
			return true, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
		case (m.Header.Type == unix.SOCK_DIAG_BY_FAMILY || m.Header.Type == tcpSockets) && len(m.Data) >= messageLen:
			f(Socket{m.Data[:messageLen], m.Data[messageLen:]})
		}
	}
	return false, nil
}

// Socket is the kernel's report on a socket. The zero Socket has zero addresses and no
// attributes.
type Socket struct{ message, attributes []byte }

func (s Socket) clone() Socket { return Socket{bytes.Clone(s.message), bytes.Clone(s.attributes)} }

// State is the state of TCP, such as unix.BPF_TCP_LISTEN.
func (s Socket) State() byte { return s.message[offState] }

// Own returns the socket's address; one of IPv4 is not mapped to IPv6.
func (s Socket) Own() netip.AddrPort { return s.address(0, 4) }

// Peer returns the address of the other side, likewise.
func (s Socket) Peer() netip.AddrPort { return s.address(2, 20) }

func (s Socket) address(port, address int) netip.AddrPort {
	if s.message == nil {
		return netip.AddrPort{}
	}
	id := s.message[offID:]
	a := netip.AddrFrom16([16]byte(id[address:])).Unmap()
	if s.message[0] == unix.AF_INET {
		a = netip.AddrFrom4([4]byte(id[address:]))
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(id[port:]))
}

// Received returns how many bytes the owner can read.
func (s Socket) Received() int64 {
	return int64(binary.NativeEndian.Uint32(s.message[offQueues:]))
}

// Sent returns how many bytes the other side has not acknowledged.
func (s Socket) Sent() int64 { return int64(binary.NativeEndian.Uint32(s.message[offQueues+4:])) }

// Acknowledged returns how many bytes the other side has acknowledged so far, if the socket has
// Info.
func (s Socket) Acknowledged() int64 { return s.info(120) }

// Arrived returns how many bytes have arrived so far, if the socket has Info. Some may not have
// been read.
func (s Socket) Arrived() int64 { return s.info(128) }

// info returns a 64-bit number of struct tcp_info.
func (s Socket) info(offset int) int64 {
	info := s.Attribute(Info, offset+8)
	if info == nil {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(info[offset:]))
}

// UID returns the owner's user id, and false if no process holds the socket.
func (s Socket) UID() (uid uint32, owned bool) {
	return binary.NativeEndian.Uint32(s.message[offUID:]), binary.NativeEndian.Uint32(s.message[offInode:]) != 0
}

// Attribute returns the value of an attribute, or nil if the socket has none of at least size
// bytes.
func (s Socket) Attribute(kind uint16, size int) []byte {
	for rest := s.attributes; len(rest) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(rest))
		if n < unix.SizeofRtAttr || n > len(rest) {
			return nil
		}
		if binary.NativeEndian.Uint16(rest[2:]) == kind && n >= unix.SizeofRtAttr+size {
			return rest[unix.SizeofRtAttr:n]
		}
		aligned := (n + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
		rest = rest[min(len(rest), aligned):]
	}
	return nil
}
