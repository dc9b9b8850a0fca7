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
	source, fd, mode uint32 // descriptor in this process; descriptor in the caller, if the flags select it; its O_* flags
}

const notifAddFD = 0x4018_2103 // SECCOMP_IOCTL_NOTIF_ADDFD

// checkSizes checks that the kernel's structures have the sizes of those here.
func checkSizes() error {
	var sizes struct{ notification, response, data uint16 }
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	if uintptr(sizes.notification) != unsafe.Sizeof(notification{}) || uintptr(sizes.response) != unsafe.Sizeof(response{}) {
		return fmt.Errorf("unexpected sizes of this kernel's notifications: %d and %d bytes", sizes.notification, sizes.response)
	}
	return nil
}

// receiveFrom receives the next call. The kernel requires a zeroed structure.
func receiveFrom(fd int) (*notification, error) {
	n := &notification{}
	return n, ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
}

func sendTo(fd int, r *response) error {
	return ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
}

// addTo adds a descriptor to the caller and returns it from the call.
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
