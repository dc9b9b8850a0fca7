package audit

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/landlock"
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

// minABI is the first ABI with audit records.
const minABI = 7

// UnavailableError is the error if denials can't be reported.
type UnavailableError struct {
	Reason string
	Cure   string // advice for the administrator
	Err    error  // the cause; may be nil
}

// Error returns a text such as "audit: off; run auditctl -e 1, or boot with audit=1".
func (e *UnavailableError) Error() string {
	text := "audit: " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Cure
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Available returns nil if the kernel records denials and this process may read them, and
// an *UnavailableError otherwise. It changes no setting.
func Available() error {
	abi, err := landlock.ABI()
	if err == nil && abi < minABI {
		err = &landlock.ABIError{Have: abi, Need: minABI, Linux: landlock.Versions()[minABI-1].Linux, What: "audit"}
	}
	if err != nil {
		return &UnavailableError{"landlock does not record denials", "boot a kernel of version 6.15 or later", err}
	}
	switch on, err := enabled(); {
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return &UnavailableError{"not supported by this kernel", "boot a kernel with CONFIG_AUDIT=y", err}
	case err != nil:
		return &UnavailableError{"its state can't be read", "run as root with CAP_AUDIT_CONTROL, in the machine's own user and pid namespaces", err}
	case on == 0:
		return &UnavailableError{Reason: "off", Cure: "run auditctl -e 1, or boot with audit=1"}
	}
	// The kernel sends records to sockets of one network namespace, which no system call identifies. A process
	// that can read audit's state is in the first pid namespace, so pid 1 is the machine's first process.
	first, errFirst := os.Readlink("/proc/1/ns/net")
	own, errOwn := os.Readlink("/proc/thread-self/ns/net")
	if errFirst == nil && errOwn == nil && first != own {
		return &UnavailableError{Reason: "records reach the machine's own network namespace only", Cure: "run there, as docker run --network=host does"}
	}
	fd, err := listenAudit()
	if err != nil {
		return &UnavailableError{"its records can't be read", "run as root with CAP_AUDIT_READ", err}
	}
	return unix.Close(fd)
}

// enabled reads audit's state: 0 is off, 1 on, 2 on and locked until the next boot.
func enabled() (uint32, error) {
	reply, err := request(unix.AUDIT_GET, unix.NLM_F_REQUEST, nil)
	if err != nil {
		return 0, err
	}
	if reply.kind != unix.AUDIT_GET || len(reply.text) < 8 {
		return 0, errors.New("audit_get: unexpected reply of the kernel")
	}
	return binary.NativeEndian.Uint32([]byte(reply.text[4:])), nil // the second field of struct audit_status
}

// request sends a message to the kernel and returns the first reply.
func request(kind, flags uint16, payload []byte) (message, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return message{}, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	header := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(payload))
	binary.NativeEndian.PutUint32(header, uint32(cap(header)))
	binary.NativeEndian.PutUint16(header[4:], kind)
	binary.NativeEndian.PutUint16(header[6:], flags)
	if err := unix.Sendto(fd, append(header, payload...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return message{}, os.NewSyscallError("sendto", err)
	}
	timeout := unix.Timeval{Sec: 2} // ample: the kernel replies during sendto
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return message{}, os.NewSyscallError("setsockopt", err)
	}
	reply := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return message{}, os.NewSyscallError("recvfrom", err)
	}
	if n < unix.NLMSG_HDRLEN {
		return message{}, errors.New("truncated reply of the kernel")
	}
	m := decode(reply[:n])
	if m.kind == unix.NLMSG_ERROR && len(m.text) >= 4 {
		if code := int32(binary.NativeEndian.Uint32([]byte(m.text))); code != 0 { // 0 acknowledges
			return message{}, syscall.Errno(-code)
		}
	}
	return m, nil
}
