package notify

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// mostText is some of PATH_MAX, for people.
const mostText = 256

// readText reads a string out of another process, up to its end or mostText bytes.
// The string may end just before memory that can't be read: the kernel gives what
// it got of whole pieces, so that each page is a piece.
func readText(pid int, address uint64) string {
	var text [mostText]byte
	page := uint64(os.Getpagesize())
	first := min(mostText, page-address%page)
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: int(first)}}
	if first < mostText {
		remote = append(remote, unix.RemoteIovec{Base: uintptr(address + first), Len: int(mostText - first)})
	}
	local := []unix.Iovec{{Base: &text[0], Len: mostText}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err != nil {
		return ""
	}
	until, _, _ := bytes.Cut(text[:n], []byte{0})
	return string(until)
}
