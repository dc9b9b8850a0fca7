package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// See linux/inet_diag.h.
const (
	requestLen = 56 // struct inet_diag_req_v2
	messageLen = 72 // struct inet_diag_msg

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

// Query selects sockets of the network namespace of a netlink socket.
type Query struct {
	Family   byte // unix.AF_INET or unix.AF_INET6
	Protocol byte // unix.IPPROTO_TCP or unix.IPPROTO_UDP

	States uint32 // a bit for each; 0: all
	Port   uint16 // the sockets' own; 0: any
	Memory bool   // the sockets have the attributes Info and Memory
}

// Each calls f for each socket of the list. A Socket is valid until f returns.
func (q Query) Each(netlink *os.File, f func(Socket)) error {
	var id [4]byte
	binary.BigEndian.PutUint16(id[:], q.Port)
	return q.ask(netlink, unix.NLM_F_DUMP, id[:], f)
}

// Connection returns the socket of a TCP connection. The error is fs.ErrNotExist if there is
// none.
func Connection(netlink *os.File, own, peer netip.AddrPort) (s Socket, err error) {
	q := Query{Family: unix.AF_INET, Protocol: unix.IPPROTO_TCP}
	if peer.Addr().Is6() {
		q.Family = unix.AF_INET6
	}
	var id [36]byte
	binary.BigEndian.PutUint16(id[:], own.Port())
	binary.BigEndian.PutUint16(id[2:], peer.Port())
	copy(id[4:20], own.Addr().AsSlice())
	copy(id[20:36], peer.Addr().AsSlice())
	err = q.ask(netlink, 0, id[:], func(found Socket) { s = found })
	// Without such a connection the kernel returns a listening socket.
	if err == unix.ENOENT || err == nil && (s.Own() != own || s.Peer() != peer) {
		err = os.ErrNotExist
	}
	return s, err
}

// ask sends a request, which the kernel answers with a list, or with one message without flags.
func (q Query) ask(netlink *os.File, flags uint16, id []byte, f func(Socket)) error {
	request := make([]byte, unix.SizeofNlMsghdr+requestLen)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
	body := request[unix.SizeofNlMsghdr:]
	body[0], body[1] = q.Family, q.Protocol
	if q.Memory {
		body[2] = 1<<(Info-1) | 1<<(Memory-1)
	}
	if q.States == 0 {
		q.States = 0xffff_ffff
	}
	binary.NativeEndian.PutUint32(body[4:], q.States)
	copy(body[offRequestID:], id)
	binary.NativeEndian.PutUint64(body[requestLen-8:], 0xffff_ffff_ffff_ffff) // INET_DIAG_NOCOOKIE
	fd := int(netlink.Fd())
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
		if done, err := Parse(answer[:n], f); done || err != nil || flags == 0 {
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
		case m.Header.Type == unix.SOCK_DIAG_BY_FAMILY && len(m.Data) >= messageLen:
			f(Socket{m.Data[:messageLen], m.Data[messageLen:]})
		}
	}
	return false, nil
}

// Socket is what the kernel says of a socket. The zero Socket has zero addresses, and no
// attributes.
type Socket struct{ message, attributes []byte }

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

// UID returns the owner's user id, and false if no process has the socket.
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
