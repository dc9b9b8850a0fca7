package relay

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// Readiness waits for listeners that have a connection to accept.
type Readiness struct{ file *os.File }

// NewReadiness returns one without listeners. The caller closes it.
func NewReadiness() (*Readiness, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(epoll, true) // so that os.NewFile uses the poller
	}
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &Readiness{os.NewFile(uintptr(epoll), "listeners")}, nil
}

// Add adds a listener, which stays the caller's.
func (r *Readiness) Add(listener int) error {
	return kernfile.Control(r.file, func(epoll int) error {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(listener)}
		return os.NewSyscallError("epoll_ctl", unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, listener, &event))
	})
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
