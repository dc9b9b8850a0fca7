package jail

import (
	"os"

	"golang.org/x/sys/unix"
)

// socketPair returns the two ends of a stream socket. The host's end does not
// block a thread while it is read.
func socketPair() (host, child *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "setup"), os.NewFile(uintptr(fds[1]), "setup"), nil
}
