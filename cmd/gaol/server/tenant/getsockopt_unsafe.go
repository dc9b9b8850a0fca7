package tenant

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// getsockopt reads an option of any size, for which package unix lacks a function. It returns the
// option's size, also if that is larger than buf (ERANGE).
func getsockopt(fd, level, name int, buf []byte) (n int, err error) {
	size := uint32(len(buf))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return int(size), errno
	}
	return int(size), nil
}
