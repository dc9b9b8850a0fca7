package audit

import (
	"encoding/binary"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket receives audit's multicast messages.
type socket struct {
	file *os.File
	conn syscall.RawConn
	buf  []byte
}

// message is one record.
type message struct {
	kind uint16
	text string
}

// backlog is the size of the socket's buffer in bytes.
const backlog = 1 << 20

func openSocket() (*socket, error) {
	fd, err := listenAudit()
	if err != nil {
		return nil, err
	}
	s := &socket{file: os.NewFile(uintptr(fd), "audit"), buf: make([]byte, unix.NLMSG_HDRLEN+maxRecord+1)} // one more byte: parsing rejects truncated records as too long
	if s.conn, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

// listenAudit opens a socket in the multicast group, which does not disturb auditd.
func listenAudit() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_AUDIT)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, backlog); err != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, backlog) // without CAP_NET_ADMIN: up to the system's limit
	}
	err = os.NewSyscallError("setsockopt", filter(fd))
	if err == nil {
		group := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.AUDIT_NLGRP_READLOG - 1)}
		err = os.NewSyscallError("bind", unix.Bind(fd, group))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// filter makes the kernel drop all records except Landlock's: audit sends further records
// with each denial, about the system call, and may send many others.
func filter(fd int) error {
	const kind = 4 // offset of the type in a netlink header
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: kind},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 2, K: loaded(unix.AUDIT_LANDLOCK_ACCESS)},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: loaded(unix.AUDIT_LANDLOCK_DOMAIN)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// loaded returns a number as a filter loads it, which assumes network byte order.
func loaded(kind uint16) uint32 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], kind)
	return uint32(binary.BigEndian.Uint16(b[:]))
}

// receive waits for a record of the kernel. It returns an error when the socket is closed.
func (s *socket) receive() (message, error) {
	for {
		var n int
		var from unix.Sockaddr
		var err error
		closed := s.conn.Read(func(fd uintptr) bool {
			n, from, err = unix.Recvfrom(int(fd), s.buf, 0)
			return err != unix.EAGAIN
		})
		switch sender, _ := from.(*unix.SockaddrNetlink); {
		case closed != nil:
			return message{}, closed
		case err == unix.EINTR:
		case err != nil:
			return message{}, err
		case sender == nil || sender.Pid != 0 || n < unix.NLMSG_HDRLEN: // not from the kernel
		default:
			return decode(s.buf[:n]), nil
		}
	}
}

// decode splits a message into type and text. It ignores the length in the header, which
// was wrong in some kernels: a message is the whole datagram.
func decode(b []byte) message {
	return message{binary.NativeEndian.Uint16(b[4:]), string(b[unix.NLMSG_HDRLEN:])}
}
