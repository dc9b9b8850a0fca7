package notify

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// maxPath is less than PATH_MAX: paths are for people to read.
const maxPath = 256

// readPath reads a string of another process, up to its end or maxPath bytes. It reads each
// page as one vector, because the kernel returns only whole vectors and the string may end
// just before unreadable memory.
func readPath(pid int, address uint64) string {
	var path [maxPath]byte
	page := uint64(os.Getpagesize())
	first := min(maxPath, page-address%page)
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: int(first)}}
	if first < maxPath {
		remote = append(remote, unix.RemoteIovec{Base: uintptr(address + first), Len: int(maxPath - first)})
	}
	local := []unix.Iovec{{Base: &path[0], Len: maxPath}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err != nil {
		return ""
	}
	s, _, _ := bytes.Cut(path[:n], []byte{0})
	return string(s)
}
