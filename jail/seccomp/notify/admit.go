package notify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Admit lets a launcher become the guest's program: it has the kernel carry out the
// launcher's execve calls, of which a search in PATH makes several, refuses the
// other ones, and returns nil as soon as the launcher's end of conn is closed, or a
// call shows that the program runs. Serve answers that call. An end by ctx is its
// error, one by Close os.ErrClosed. Whether an execve worked is not told: a launcher
// that died looks the same, and the caller, who reads its reports, knows.
//
// Admit never reads from conn, and does not mind unread reports. conn must not be in
// blocking mode, and is the caller's to close.
//
// Preconditions: the filter is only the launcher's, a single trusted process that
// no guest code runs in; its end of conn closes on execve.
func (l *Listener) Admit(ctx context.Context, conn syscall.Conn) error {
	if _, asks := l.filter.Refusal(unix.SYS_EXECVE, [6]uint64{}); !asks {
		return nil // whatever asks is the program
	}
	w, err := l.watch(ctx, conn)
	if err != nil {
		return err
	}
	defer w.end()
	var a admission
	for {
		n, err := l.receive()
		if err == nil {
			err = l.admit(n, &a, w)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded): // woken
			return w.why()
		case errors.Is(err, io.EOF), err == errRuns:
			return nil
		case err != nil:
			return err
		}
	}
}

var errRuns = errors.New("the program runs")

// admission knows the launcher by its first call: there is no guest code then.
type admission struct{ image []byte }

func (l *Listener) admit(n *notification, a *admission, w *watch) error {
	image, err := imageOf(n.pid)
	if !l.waits(n) {
		return nil
	}
	if a.image == nil {
		a.image = image
	}
	switch {
	case err != nil:
		l.held = n
		return err
	case w.hungUp() || !bytes.Equal(image, a.image):
		l.held = n
		return errRuns
	case n.nr == unix.SYS_EXECVE:
		return l.let(n)
	default:
		return l.refuse(n, l.describe(n).Errno)
	}
}

// imageOf tells one execve of a process from the next, even of the same file: the
// kernel's list for the program loader has the addresses that it chose by chance.
// The process can't change it without a prctl that no filter here allows.
func imageOf(pid uint32) ([]byte, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/auxv")
}

// watch wakes its listener when the other end of a socket is closed.
type watch struct {
	ctx      context.Context
	file     *os.File
	conn     syscall.RawConn
	listener *Listener
	forget   func() bool
	done     chan struct{}
}

func (l *Listener) watch(ctx context.Context, conn syscall.Conn) (*watch, error) {
	file, err := watched(conn, func(uintptr) error { return nil })
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	w := &watch{ctx: ctx, file: file, conn: raw, listener: l, done: make(chan struct{})}
	w.forget = context.AfterFunc(ctx, func() { expire(file) })
	go w.wait()
	return w, nil
}

func (w *watch) wait() {
	defer close(w.done)
	_ = w.conn.Read(isHungUp) // however it ends, Admit looks
	expire(w.listener.file)
}

// expire ends waiting in a file. One that is closed has nobody waiting.
func expire(f *os.File) { _ = f.SetReadDeadline(time.Unix(1, 0)) }

func (w *watch) end() {
	w.forget()
	w.file.Close()
	<-w.done
	_ = w.listener.file.SetReadDeadline(time.Time{}) // fails if the listener is closed, as will all else
}

// why tells why the listener was woken.
func (w *watch) why() error {
	if w.hungUp() {
		return nil
	}
	return w.ctx.Err()
}

func (w *watch) hungUp() bool {
	hungUp := false
	err := w.conn.Control(func(fd uintptr) { hungUp = isHungUp(fd) })
	return hungUp || err != nil
}

// isHungUp asks for the other end, not for the end of what is to be read: there may
// be reports that nobody has read.
func isHungUp(fd uintptr) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(polled, 0)
	for err == unix.EINTR {
		n, err = unix.Poll(polled, 0)
	}
	return n != 0 || err != nil // an error: don't let anything pass
}
