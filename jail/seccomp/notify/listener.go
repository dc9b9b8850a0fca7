package notify

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"gaol/jail/seccomp"

	"golang.org/x/sys/unix"
)

// Listener answers the calls of all processes that have one loaded filter. It needs
// one Close. Admit, if there is a launcher, comes first, and then Serve.
type Listener struct {
	file   *os.File
	conn   syscall.RawConn
	filter *seccomp.Filter
	closed atomic.Bool

	held     *notification // what Admit received and Serve is to answer
	answered int

	supplied string // a label; empty: none
	open     func(Call) (*os.File, error)
}

// New takes the descriptor that loading a filter with SECCOMP_FILTER_FLAG_NEW_LISTENER
// gave, and closes fd in any case. The filter is the one that was loaded: it says what
// to answer.
func New(fd *os.File, f *seccomp.Filter) (*Listener, error) {
	defer fd.Close()
	if err := checkSizes(); err != nil {
		return nil, fmt.Errorf("seccomp listener: %w", err)
	}
	file, err := watched(fd, setNonblock)
	if err != nil {
		return nil, fmt.Errorf("seccomp listener: %w", err)
	}
	l := &Listener{file: file, filter: f}
	l.conn, err = file.SyscallConn()
	return l, err
}

// Close ends Admit and Serve. Calls that wait for an answer, and later ones, get
// ENOSYS.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.file.Close()
}

func setNonblock(fd uintptr) error { return unix.SetNonblock(int(fd), true) }

// watched duplicates a descriptor so that the runtime's poller watches the copy,
// whatever its owner does with his. It calls prepare before that.
func watched(of syscall.Conn, prepare func(fd uintptr) error) (*os.File, error) {
	conn, err := of.SyscallConn()
	if err != nil {
		return nil, err
	}
	var own int
	gone := conn.Control(func(fd uintptr) {
		if err = prepare(fd); err == nil {
			own, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		}
	})
	if gone != nil || err != nil {
		return nil, errors.Join(gone, os.NewSyscallError("fcntl", err))
	}
	file := os.NewFile(uintptr(own), "watched")
	if err := file.SetReadDeadline(time.Time{}); err != nil { // it blocks, or the poller has no room for it
		file.Close()
		return nil, fmt.Errorf("poll: %w", err)
	}
	return file, nil
}

// receive waits for a call. io.EOF: no process has the filter any more. os.ErrClosed:
// so is the listener. os.ErrDeadlineExceeded: Admit wants to go on.
func (l *Listener) receive() (*notification, error) {
	var n *notification
	var err error
	look := func(fd uintptr) bool {
		n, err = take(int(fd))
		return err != unix.EAGAIN
	}
	for {
		waited := l.conn.Read(look)
		switch {
		case waited == nil:
			return n, err
		case l.closed.Load():
			return nil, os.ErrClosed
		case errors.Is(waited, os.ErrDeadlineExceeded):
			return nil, waited
		}
		// The kernel says "error" to a poll that a signal interrupts, and the runtime
		// takes it for lasting until something else happens.
		time.Sleep(time.Millisecond)
	}
}

// take gives a call that waits. EAGAIN: none does. It looks before it receives, for
// that blocks whatever the descriptor's flags.
func take(fd int) (*notification, error) {
	for {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		count, err := unix.Poll(polled, 0)
		switch {
		case err == unix.EINTR: // again
		case err != nil:
			return nil, os.NewSyscallError("poll", err)
		case count == 0:
			return nil, unix.EAGAIN
		case polled[0].Revents&unix.POLLIN != 0:
			n, err := receiveFrom(fd)
			if err != unix.ENOENT && err != unix.EINTR { // ENOENT: the caller was killed since
				return n, os.NewSyscallError("seccomp receive", err)
			}
		case polled[0].Revents&unix.POLLHUP != 0:
			return nil, io.EOF
		}
	}
}

// refuse answers with an errno.
func (l *Listener) refuse(n *notification, errno syscall.Errno) error {
	return l.send(response{id: n.id, errno: -int32(errno)})
}

// let has the kernel carry the call out. See doc.go for what that is fit for.
func (l *Listener) let(n *notification) error {
	return l.send(response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// send answers. That a caller was killed, or left for a signal, is no error.
func (l *Listener) send(r response) error {
	err := l.control(func(fd int) error { return sendTo(fd, &r) })
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// waits tells whether the caller still waits for an answer: if so, its pid was its
// own all the time.
func (l *Listener) waits(n *notification) bool {
	return l.control(func(fd int) error { return checkID(fd, n.id) }) == nil
}

func (l *Listener) control(do func(fd int) error) error {
	var err error
	if l.conn.Control(func(fd uintptr) { err = do(int(fd)) }) != nil {
		return os.ErrClosed
	}
	return err
}
