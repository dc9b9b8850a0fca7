package relay

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Readiness waits for listeners that have a connection to accept.
type Readiness struct{ file *os.File }

// NewReadiness returns one for non-blocking descriptors, which it does not keep. The caller closes
// it.
func NewReadiness(fds []int) (*Readiness, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	for _, fd := range fds {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return nil, errors.Join(os.NewSyscallError("epoll_ctl", err), unix.Close(epoll))
		}
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // so that os.NewFile uses the poller
		return nil, errors.Join(err, unix.Close(epoll))
	}
	return &Readiness{os.NewFile(uintptr(epoll), "listeners")}, nil
}

// Wait waits until a listener is ready. After the time, unless that is 0, the error is
// os.ErrDeadlineExceeded, and after Close os.ErrClosed.
func (r *Readiness) Wait(most time.Duration) error {
	deadline := time.Time{}
	if most > 0 {
		deadline = time.Now().Add(most)
	}
	if err := r.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	raw, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		var event [1]unix.EpollEvent
		n, err := unix.EpollWait(int(fd), event[:], 0)
		if err != nil && err != unix.EINTR {
			failed = os.NewSyscallError("epoll_wait", err)
		}
		return n > 0 || failed != nil
	})
	return errors.Join(err, failed)
}

// Close ends Wait.
func (r *Readiness) Close() error { return r.file.Close() }
