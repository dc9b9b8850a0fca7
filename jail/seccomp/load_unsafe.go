package seccomp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Load sets no_new_privs and loads the program of a [Filter] for this thread, or with
// SECCOMP_FILTER_FLAG_TSYNC both for all threads of the process.
func Load(program []byte, flags uintptr) error {
	if len(program) < unix.SizeofSockFilter {
		return unix.EINVAL
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{
		Len:    uint16(len(program) / unix.SizeofSockFilter),
		Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0])),
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
