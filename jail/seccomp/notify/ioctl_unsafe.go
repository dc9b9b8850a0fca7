package notify

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is the kernel's struct seccomp_notif.
type notification struct {
	id   uint64
	pid  uint32
	_    uint32 // flags
	nr   int32
	_    uint32 // architecture
	_    uint64 // instruction pointer
	args [6]uint64
}

// response is the kernel's struct seccomp_notif_resp.
type response struct {
	id    uint64
	_     int64 // value
	errno int32 // negative
	flags uint32
}

// addition is the kernel's struct seccomp_notif_addfd.
type addition struct {
	id     uint64
	flags  uint32
	source uint32 // descriptor in this process
	number uint32 // descriptor in the caller, with SECCOMP_ADDFD_FLAG_SETFD
	mode   uint32 // its O_* flags
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

// ioctl passes a pointer to a structure to the listener of a filter.
func ioctl[T any](fd int, request uintptr, argument *T) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(argument))); errno != 0 {
		return errno
	}
	return nil
}
