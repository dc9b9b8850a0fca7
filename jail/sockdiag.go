package jail

import (
	"encoding/binary"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// See sock_diag(7) and linux/inet_diag.h.
const (
	diagRequestLen = 56 // struct inet_diag_req_v2
	diagMessageLen = 72 // struct inet_diag_msg
	diagMemory     = 7  // INET_DIAG_SKMEMINFO: 32-bit numbers
	diagState      = 1  // offset of the state in a message
	diagPort       = 4  // of the socket's port, and then its peer's, in network byte order
	diagAddress    = 8  // of the socket's address, 16 bytes
	diagPeer       = 24 // of the peer's address
	diagQueues     = 56 // of the bytes to be read, and of those to be acknowledged
	diagUID        = 64 // of the owner's user id
	diagInode      = 68 // of the inode: 0 for a socket that no process has
)

// socketList is a list of sockets that the kernel makes.
type socketList struct {
	family, protocol byte
	states           uint32 // a bit for each
	port             uint16 // the sockets' own; 0: any
	extensions       byte   // the attributes that it adds
}

const allStates = 0xffff_ffff

// read requests the list by a netlink socket, and calls f for each socket in it.
func (l socketList) read(s *os.File, f func(message, attributes []byte)) error {
	request := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.SizeofNlMsghdr:]
	body[0], body[1], body[2] = l.family, l.protocol, l.extensions
	binary.NativeEndian.PutUint32(body[4:], l.states)
	binary.BigEndian.PutUint16(body[8:], l.port)
	fd := int(s.Fd())
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
		if done, err := eachSocket(answer[:n], f); done || err != nil {
			return err
		}
	}
}

// eachSocket calls f for the sockets of a part of the kernel's answer. It reports whether
// that was the last part.
func eachSocket(part []byte, f func(message, attributes []byte)) (done bool, err error) {
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
			f(m.Data[:diagMessageLen], m.Data[diagMessageLen:])
		}
	}
	return false, nil
}

// endpoints returns the addresses of a socket and its peer.
func endpoints(message []byte) connection {
	at := func(address, port int) netip.AddrPort {
		a := netip.AddrFrom16([16]byte(message[address:])).Unmap()
		if message[0] == unix.AF_INET {
			a = netip.AddrFrom4([4]byte(message[address:]))
		}
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(message[port:]))
	}
	return connection{at(diagAddress, diagPort), at(diagPeer, diagPort+2)}
}
