package sockdiag

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"os"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The structs of linux/inet_diag.h.
type (
	// socketID is struct inet_diag_sockid. Its ports are big-endian.
	socketID struct {
		OwnPort, PeerPort [2]byte
		Own, Peer         [16]byte // an IPv4 address is in the first four bytes
		Interface         uint32
		Cookie            uint64
	}

	// request is struct inet_diag_req_v2.
	request struct {
		Family, Protocol, Attributes, _ byte
		States                          uint32
		ID                              socketID
	}

	// tcpRequest is struct inet_diag_req.
	tcpRequest struct {
		Family, OwnBits, PeerBits, Attributes byte
		ID                                    socketID
		States, Databases                     uint32
	}

	// header is struct inet_diag_msg.
	header struct {
		Family, State, Timer, Retransmits byte
		ID                                socketID
		Expires, ReceiveQueue, SendQueue  uint32
		UID, Inode                        uint32
	}
)

// tcpSockets, TCPDIAG_GETSOCK, lists the TCP sockets of both families. A list of one family takes as
// long, because the kernel goes through the connections of the whole machine.
const tcpSockets = 18

// Attributes of a socket.
const (
	Info   = 2  // INET_DIAG_INFO: struct tcp_info, for TCP
	Memory = 7  // INET_DIAG_SKMEMINFO: 32-bit numbers, see unix.SK_MEMINFO_RMEM_ALLOC
	Cgroup = 21 // INET_DIAG_CGROUP_ID: a 64-bit number, since Linux 5.9
)

// Open opens a netlink socket for queries in the thread's network namespace.
func Open() (*nl.SocketHandle, error) {
	s, err := nl.Subscribe(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return &nl.SocketHandle{Socket: s}, nil
}

// Query selects sockets of the network namespace of a netlink socket.
type Query struct {
	Protocol byte // unix.IPPROTO_TCP or unix.IPPROTO_UDP

	States uint32 // a bit for each; 0: all
	Port   uint16 // the sockets' own; 0: any
	Memory bool   // the sockets have the attributes Info and Memory
}

// Each calls f for each socket of the list.
func (q Query) Each(netlink *nl.SocketHandle, f func(Socket)) error {
	id := socketID{OwnPort: bigEndian(q.Port)}
	if q.Protocol == unix.IPPROTO_TCP {
		return send(netlink, tcpSockets, unix.NLM_F_DUMP, tcpRequest{Attributes: q.attributes(), ID: id, States: q.states()}, f)
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err := send(netlink, unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP, q.ofFamily(family, id), f); err != nil {
			return err
		}
	}
	return nil
}

// Connection returns the socket of a TCP connection. The error is fs.ErrNotExist if there is
// none.
func Connection(netlink *nl.SocketHandle, own, peer netip.AddrPort) (s Socket, err error) {
	family := byte(unix.AF_INET)
	if peer.Addr().Is6() {
		family = unix.AF_INET6
	}
	id := socketID{OwnPort: bigEndian(own.Port()), PeerPort: bigEndian(peer.Port()), Cookie: noCookie}
	copy(id.Own[:], own.Addr().AsSlice())
	copy(id.Peer[:], peer.Addr().AsSlice())
	err = send(netlink, unix.SOCK_DIAG_BY_FAMILY, 0, Query{Protocol: unix.IPPROTO_TCP}.ofFamily(family, id), func(found Socket) { s = found })
	// Without such a connection the kernel returns a listening socket.
	if err == unix.ENOENT || err == nil && (s.Own() != own || s.Peer() != peer) {
		err = os.ErrNotExist
	}
	return s, err
}

const noCookie = 1<<64 - 1 // INET_DIAG_NOCOOKIE, twice

func bigEndian(port uint16) (b [2]byte) {
	binary.BigEndian.PutUint16(b[:], port)
	return b
}

// ofFamily returns a request for sockets of one address family.
func (q Query) ofFamily(family byte, id socketID) request {
	return request{Family: family, Protocol: q.Protocol, Attributes: q.attributes(), States: q.states(), ID: id}
}

func (q Query) attributes() byte {
	if q.Memory {
		return 1<<(Info-1) | 1<<(Memory-1)
	}
	return 0
}

func (q Query) states() uint32 { return cmp.Or(q.States, 0xffff_ffff) }

// send sends a request, and calls f for each socket of the answer.
func send(netlink *nl.SocketHandle, kind, flags int, request any, f func(Socket)) error {
	r := nl.NewNetlinkRequest(kind, flags)
	message, err := binary.Append(nil, binary.NativeEndian, request)
	if err != nil {
		return err
	}
	r.AddRawData(message)
	r.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_SOCK_DIAG: netlink}
	return r.ExecuteIter(unix.NETLINK_SOCK_DIAG, 0, func(message []byte) bool {
		if s, ok := Parse(message); ok {
			f(s)
		}
		return true
	})
}

// Parse returns the socket of a message of the kernel, without its header.
func Parse(message []byte) (s Socket, ok bool) {
	n, err := binary.Decode(message, binary.NativeEndian, &s.header)
	if err != nil {
		return Socket{}, false
	}
	s.attributes = message[n:]
	return s, true
}

// Socket is the kernel's report on a socket. The zero Socket has the addresses [::]:0 and
// no attributes.
type Socket struct {
	header     header
	attributes []byte
}

// State is the state of TCP, such as unix.BPF_TCP_LISTEN.
func (s Socket) State() byte { return s.header.State }

// Own returns the socket's address; one of IPv4 is not mapped to IPv6.
func (s Socket) Own() netip.AddrPort { return s.address(s.header.ID.Own, s.header.ID.OwnPort) }

// Peer returns the address of the other side, likewise.
func (s Socket) Peer() netip.AddrPort { return s.address(s.header.ID.Peer, s.header.ID.PeerPort) }

func (s Socket) address(address [16]byte, port [2]byte) netip.AddrPort {
	a := netip.AddrFrom16(address).Unmap()
	if s.header.Family == unix.AF_INET {
		a = netip.AddrFrom4([4]byte(address[:]))
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port[:]))
}

// ReceiveQueue returns how many bytes the owner can read.
func (s Socket) ReceiveQueue() int64 { return int64(s.header.ReceiveQueue) }

// SendQueue returns how many bytes the other side has not acknowledged.
func (s Socket) SendQueue() int64 { return int64(s.header.SendQueue) }

// BytesAcked returns how many bytes the other side has acknowledged so far, if the socket has Info.
func (s Socket) BytesAcked() int64 { return s.info(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked)) }

// BytesReceived returns how many bytes have arrived so far, read or not, if the socket has Info.
func (s Socket) BytesReceived() int64 { return s.info(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received)) }

// info returns a 64-bit number of struct tcp_info.
func (s Socket) info(offset uintptr) int64 {
	info := s.Attribute(Info, int(offset)+8)
	if info == nil {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(info[offset:]))
}

// UID returns the owner's user id, and false if no process holds the socket.
func (s Socket) UID() (uid uint32, owned bool) { return s.header.UID, s.header.Inode != 0 }

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
