package notify

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is the kernel's struct seccomp_notif.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// response is the kernel's struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// addition is the kernel's struct seccomp_notif_addfd.
type addition struct {
	id               uint64
	flags            uint32
	source, fd, mode uint32 // a descriptor of this process; that of the caller, if the flags ask for one; its flags
}

const notifAddFD = 0x4018_2103 // SECCOMP_IOCTL_NOTIF_ADDFD

// checkSizes makes sure that the kernel writes no more than there is room for.
func checkSizes() error {
	var sizes struct{ notification, response, data uint16 }
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	if uintptr(sizes.notification) != unsafe.Sizeof(notification{}) || uintptr(sizes.response) != unsafe.Sizeof(response{}) {
		return fmt.Errorf("notifications of this kernel have %d and %d bytes", sizes.notification, sizes.response)
	}
	return nil
}

// receiveFrom takes the next call. The kernel wants the room for it to be zero.
func receiveFrom(fd int) (*notification, error) {
	n := &notification{}
	return n, ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
}

func sendTo(fd int, r *response) error {
	return ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
}

// addTo gives the caller a descriptor, which its call returns.
func addTo(fd int, a *addition) error {
	a.flags = unix.SECCOMP_ADDFD_FLAG_SEND // Linux 5.14
	return ioctl(fd, notifAddFD, unsafe.Pointer(a))
}

func checkID(fd int, id uint64) error {
	return ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id))
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
