package audit

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"gaol/jail/landlock"

	"golang.org/x/sys/unix"
)

// minABI is the ABI whose denials are told.
const minABI = 7

// UnavailableError says why denials are not told here.
type UnavailableError struct {
	Reason string
	Cure   string // what to do about it
	Err    error  // the cause; nil if the reason says all
}

// Error reads "audit: off; run auditctl -e 1, or boot with audit=1".
func (e *UnavailableError) Error() string {
	text := "audit: " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Cure
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Available returns nil if the kernel tells denials and this process may hear them,
// and an *UnavailableError otherwise. It changes nothing.
func Available() error {
	for _, look := range []func() error{lookABI, lookOn, lookNamespace, lookGroup} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

func lookABI() error {
	abi, err := landlock.ABI()
	if err == nil && abi < minABI {
		err = &landlock.ABIError{Have: abi, Need: minABI, Linux: landlock.Versions()[minABI-1].Linux, What: "audit"}
	}
	if err != nil {
		return &UnavailableError{"landlock tells no denials", "boot a kernel of version 6.15 or later", err}
	}
	return nil
}

func lookOn() error {
	on, err := enabled()
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return &UnavailableError{"this kernel has none", "boot a kernel with CONFIG_AUDIT=y", err}
	case err != nil:
		return &UnavailableError{"its state can't be read",
			"run as root with CAP_AUDIT_CONTROL, in the machine's own user and pid namespaces", err}
	case on == 0:
		return &UnavailableError{Reason: "off", Cure: "run auditctl -e 1, or boot with audit=1"}
	}
	return nil
}

// lookNamespace looks for the network namespace to whose sockets the kernel tells
// records. No call says which one that is; who may ask for audit's state is in
// the first pid namespace, and so sees the first process there. Where that can't be
// looked at, it is taken to be the right one.
func lookNamespace() error {
	first, err := os.Readlink("/proc/1/ns/net")
	mine, errMine := os.Readlink("/proc/thread-self/ns/net")
	if err == nil && errMine == nil && first != mine {
		return &UnavailableError{
			Reason: "records reach the machine's own network namespace only",
			Cure:   "run there, as docker run --network=host does",
		}
	}
	return nil
}

func lookGroup() error {
	fd, err := listenAudit()
	if err != nil {
		return &UnavailableError{"its records can't be read", "run as root with CAP_AUDIT_READ", err}
	}
	return unix.Close(fd)
}

// enabled asks the kernel: 0 is off, 1 on, 2 on and locked until the next boot.
func enabled() (uint32, error) {
	answer, err := ask(unix.AUDIT_GET, unix.NLM_F_REQUEST, nil)
	if err != nil {
		return 0, err
	}
	if answer.kind != unix.AUDIT_GET || len(answer.text) < 8 {
		return 0, errors.New("audit_get: the kernel's answer is not understood")
	}
	return binary.NativeEndian.Uint32([]byte(answer.text[4:])), nil // struct audit_status: after its mask
}

// patience is more than the kernel takes, which answers while it is asked.
var patience = unix.Timeval{Sec: 2}

// ask sends one message to the kernel and returns the first answer.
func ask(kind, flags uint16, payload []byte) (message, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return message{}, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	request := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(payload))
	binary.NativeEndian.PutUint32(request, uint32(cap(request)))
	binary.NativeEndian.PutUint16(request[4:], kind)
	binary.NativeEndian.PutUint16(request[6:], flags)
	if err := unix.Sendto(fd, append(request, payload...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return message{}, os.NewSyscallError("sendto", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return message{}, os.NewSyscallError("setsockopt", err)
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return message{}, os.NewSyscallError("recvfrom", err)
	}
	if n < unix.NLMSG_HDRLEN {
		return message{}, errors.New("the kernel's answer is cut off")
	}
	return refusal(decode(answer[:n]))
}

// refusal turns an error message into an error; one with no error acknowledges.
func refusal(m message) (message, error) {
	if m.kind != unix.NLMSG_ERROR || len(m.text) < 4 {
		return m, nil
	}
	if code := int32(binary.NativeEndian.Uint32([]byte(m.text))); code != 0 {
		return message{}, syscall.Errno(-code)
	}
	return m, nil
}
