package audit

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"gaol/jail/landlock"
)

// backlog is the size of the socket's buffer in bytes.
const backlog = 1 << 20

// openSocket opens a socket in the multicast group of audit's records, which does not disturb auditd.
func openSocket() (*nl.NetlinkSocket, error) {
	s, err := nl.Subscribe(unix.NETLINK_AUDIT, unix.AUDIT_NLGRP_READLOG)
	if err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	if s.SetReceiveBufferSize(backlog, true) != nil {
		_ = s.SetReceiveBufferSize(backlog, false) // without CAP_NET_ADMIN: up to the system's limit
	}
	if err := filter(s.GetFd()); err != nil {
		s.Close()
		return nil, os.NewSyscallError("setsockopt", err)
	}
	return s, nil
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
	s, err := openSocket()
	if err != nil {
		return &UnavailableError{"its records can't be read", "run as root with CAP_AUDIT_READ", err}
	}
	s.Close()
	return nil
}

// enabled reads audit's state: 0 is off, 1 on, 2 on and locked until the next boot.
func enabled() (uint32, error) {
	reply, err := request(nl.NewNetlinkRequest(unix.AUDIT_GET, 0))
	if err != nil {
		return 0, err
	}
	if reply.Header.Type != unix.AUDIT_GET || len(reply.Data) < 8 {
		return 0, errors.New("audit_get: unexpected reply of the kernel")
	}
	return binary.NativeEndian.Uint32(reply.Data[4:]), nil // the second field of struct audit_status
}

// request sends a message to the kernel and returns the first reply.
func request(r *nl.NetlinkRequest) (reply syscall.NetlinkMessage, err error) {
	s, err := nl.Subscribe(unix.NETLINK_AUDIT)
	if err != nil {
		return reply, os.NewSyscallError("socket", err)
	}
	defer s.Close()
	timeout := unix.Timeval{Sec: 2} // ample: the kernel replies during Send
	if err := errors.Join(s.SetReceiveTimeout(&timeout), s.Send(r)); err != nil {
		return reply, os.NewSyscallError("sendto", err)
	}
	messages, _, err := s.Receive()
	if err != nil || len(messages) == 0 {
		return reply, os.NewSyscallError("recvfrom", err)
	}
	reply = messages[0]
	if reply.Header.Type == unix.NLMSG_ERROR && len(reply.Data) >= 4 {
		if code := int32(binary.NativeEndian.Uint32(reply.Data)); code != 0 { // 0 acknowledges
			err = syscall.Errno(-code)
		}
	}
	return reply, err
}
