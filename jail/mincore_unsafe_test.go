package jail

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore sets the lowest bit of each byte of here if the page is in memory.
func mincore(pages, here []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&pages[0])), uintptr(len(pages)), uintptr(unsafe.Pointer(&here[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
