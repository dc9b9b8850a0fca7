package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// answer is what a probed system call writes. It is a variable of the package so that its address is constant.
var answer [2]uint64

// answers reports whether a system call succeeds. If it has fewer than three arguments here, the next one is an address
// that it writes some bytes to.
func answers(call uintptr, args ...uintptr) bool {
	var all [3]uintptr
	copy(all[:], append(args, uintptr(unsafe.Pointer(&answer))))
	_, _, errno := unix.Syscall(call, all[0], all[1], all[2])
	return errno == 0
}
