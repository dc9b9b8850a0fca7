package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoOwner is the error of [Gateway.Owner] for a socket that is gone, or that several
// processes could have used.
var ErrNoOwner = errors.New("no socket of the guest, or several")

// Owner returns the id of the v2 cgroup in which the guest has made the socket at its end of a
// connection, or of a datagram. Network is tcp or udp, and to is where the guest sent it.
func (g *Gateway) Owner(network string, guest, to netip.AddrPort) (cgroup uint64, err error) {
	if network == "udp" {
		return g.diag.datagramOwner(guest)
	}
	return g.diag.streamOwner(guest, to)
}

// See sock_diag(7) and linux/inet_diag.h.
const (
	diagRequestLen = 56 // struct inet_diag_req_v2
	diagMessageLen = 72 // struct inet_diag_msg
	diagCgroup     = 21 // INET_DIAG_CGROUP_ID, 8 bytes, since Linux 5.9
	diagID         = 4  // offset of struct inet_diag_sockid in a message
	diagIDRequest  = 8  // and in a request
	diagIDLen      = 36 // its ports and addresses
)

// diag asks the kernel about sockets of the guest.
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

// socketID returns struct inet_diag_sockid without interface and cookie.
func socketID(own, peer netip.AddrPort) []byte {
	id := make([]byte, diagIDLen)
	binary.BigEndian.PutUint16(id, own.Port())
	binary.BigEndian.PutUint16(id[2:], peer.Port())
	copy(id[4:20], own.Addr().AsSlice())
	copy(id[20:36], peer.Addr().AsSlice())
	return id
}

// streamOwner asks for one connection. The kernel could return a listening socket instead, so
// that the answer must have the addresses of the question.
func (d *diag) streamOwner(guest, to netip.AddrPort) (uint64, error) {
	family := byte(unix.AF_INET)
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	owner := owners{}
	err := d.ask(family, unix.IPPROTO_TCP, 0, socketID(guest, to), func(message, attributes []byte) {
		if own, peer := addressesOf(message); own == guest && peer == to {
			owner.add(attributes)
		}
	})
	return owner.only(err)
}

// addressesOf returns the addresses of a socket. Those of IPv4 may be in their IPv6 form.
func addressesOf(message []byte) (own, peer netip.AddrPort) {
	id := message[diagID : diagID+diagIDLen]
	at := func(address, port []byte) netip.AddrPort {
		a := netip.AddrFrom16([16]byte(address)).Unmap()
		if message[0] == unix.AF_INET {
			a = netip.AddrFrom4([4]byte(address))
		}
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
	}
	return at(id[4:20], id), at(id[20:36], id[2:])
}

// datagramOwner asks for all sockets with a port: several can share it, and which of them has
// sent a datagram is unknown.
func (d *diag) datagramOwner(guest netip.AddrPort) (uint64, error) {
	owner := owners{}
	id := socketID(netip.AddrPortFrom(netip.IPv4Unspecified(), guest.Port()), netip.AddrPort{})
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		err := d.ask(family, unix.IPPROTO_UDP, unix.NLM_F_DUMP, id, func(_, attributes []byte) { owner.add(attributes) })
		if err != nil {
			return 0, err
		}
	}
	return owner.only(nil)
}

// owners is a set of cgroups.
type owners map[uint64]struct{}

// add adds the cgroup of a socket, or 0 if the kernel does not say it.
func (o owners) add(attributes []byte) {
	for len(attributes) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(attributes))
		kind := binary.NativeEndian.Uint16(attributes[2:])
		if size < unix.SizeofRtAttr || size > len(attributes) {
			break
		}
		if kind == diagCgroup && size >= unix.SizeofRtAttr+8 {
			o[binary.NativeEndian.Uint64(attributes[unix.SizeofRtAttr:])] = struct{}{}
			return
		}
		aligned := (size + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
		attributes = attributes[min(len(attributes), aligned):]
	}
	o[0] = struct{}{}
}

func (o owners) only(err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	for id := range o {
		if len(o) == 1 && id != 0 {
			return id, nil
		}
	}
	return 0, ErrNoOwner
}

// ask sends a request and calls found for each socket of the answer. The kernel has made the
// whole answer, or its first part, when the request has been sent.
func (d *diag) ask(family, protocol byte, flags uint16, id []byte, found func(message, attributes []byte)) error {
	request := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
	body := request[unix.SizeofNlMsghdr:]
	body[0], body[1] = family, protocol
	binary.NativeEndian.PutUint32(body[4:], 0xffff_ffff) // in all states
	copy(body[diagIDRequest:], id)
	for i := diagRequestLen - 8; i < diagRequestLen; i++ {
		body[i] = 0xff // INET_DIAG_NOCOOKIE
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	fd := int(d.file.Fd())
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	return readAnswer(fd, flags == 0, found)
}

func readAnswer(fd int, single bool, found func(message, attributes []byte)) error {
	answer := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(answer[:n])
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
				if errno := unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data))); errno != unix.ENOENT {
					return os.NewSyscallError("sock_diag", errno)
				}
				return nil
			case m.Header.Type == unix.SOCK_DIAG_BY_FAMILY && len(m.Data) >= diagMessageLen:
				found(m.Data[:diagMessageLen], m.Data[diagMessageLen:])
			}
		}
		if single {
			return nil
		}
	}
}

func (d *diag) close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.file.Close()
}
