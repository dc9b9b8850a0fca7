package jail

import "golang.org/x/sys/unix"

// Alive reports whether processes can be started in the jail: it is not closed, and
// its pid 1, which the host's OOM killer or its root may kill, has not ended. It
// takes one system call.
func (j *Jail) Alive() bool {
	conn, err := j.pidfd.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = conn.Control(func(fd uintptr) {
		ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} // pidfd_open(2): readable once it has
		n, err := unix.Poll(ended, 0)
		for err == unix.EINTR {
			n, err = unix.Poll(ended, 0)
		}
		alive = n == 0 && err == nil
	})
	return err == nil && alive
}
