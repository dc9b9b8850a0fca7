package notify

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// Admit permits a launcher to execute the guest's program. It makes the kernel execute the
// launcher's execve calls, of which a search in PATH makes several, and refuses its other
// calls. It returns nil when the launcher's end of conn is closed or a call shows that the
// program runs; Serve replies to that call. It returns os.ErrClosed after Close. It does not
// report whether an execve succeeded: a launcher that died looks the same. The launcher's
// reports on conn show that.
//
// Admit does not read from conn and ignores unread data. conn must be in non-blocking mode.
// The caller closes it.
//
// Preconditions: only the launcher, a single trusted process that runs no guest code, has
// the filter; its end of conn is closed on execve.
func (l *Listener) Admit(conn syscall.Conn) error {
	if _, refused := l.filter.Refusal(unix.SYS_EXECVE, [6]uint64{}); !refused {
		return nil // the launcher's execve is allowed, so all refused calls are the program's
	}
	w, err := l.watchHangup(conn)
	if err != nil {
		return err
	}
	defer w.stop()
	for {
		n, err := l.receive()
		if err == nil {
			err = l.admit(n, w)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF), err == errRuns: // the first by wait
			return nil
		case err != nil:
			return err
		}
	}
}

var errRuns = errors.New("the program runs")

func (l *Listener) admit(n *notification, w *hangupWatch) error {
	image, err := imageOf(n.pid)
	if !l.isBlocked(n) {
		return nil
	}
	if w.image == nil {
		w.image = image
	}
	switch {
	case err != nil:
		l.pending = n
		return err
	case w.hungUp() || !bytes.Equal(image, w.image):
		l.pending = n
		return errRuns
	case n.nr == unix.SYS_EXECVE:
		return l.permit(n)
	default:
		return l.refuse(n, l.describe(n).Errno)
	}
}

// imageOf returns the auxiliary vector of a process. It differs after each execve, even of
// the same file, because it contains random addresses. A process can change it only by a
// prctl that no filter here allows.
func imageOf(pid uint32) ([]byte, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/auxv")
}

// hangupWatch interrupts its listener when the other end of a socket is closed.
type hangupWatch struct {
	file     *os.File
	conn     syscall.RawConn
	listener *Listener
	done     chan struct{}

	image []byte // identifies the launcher, by its first call, when no guest code runs yet
}

func (l *Listener) watchHangup(conn syscall.Conn) (*hangupWatch, error) {
	file, err := polled(conn)
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	w := &hangupWatch{file: file, conn: raw, listener: l, done: make(chan struct{})}
	go w.wait()
	return w, nil
}

// wait interrupts a read of the listener when the socket is closed.
func (w *hangupWatch) wait() {
	defer close(w.done)
	_ = w.conn.Read(isHungUp)
	_ = w.listener.file.SetReadDeadline(time.Unix(1, 0)) // fails if the listener is closed
}

func (w *hangupWatch) stop() {
	w.file.Close()
	<-w.done
	_ = w.listener.file.SetReadDeadline(time.Time{}) // fails if the listener is closed
}

func (w *hangupWatch) hungUp() bool {
	hungUp := false
	err := w.conn.Control(func(fd uintptr) { hungUp = isHungUp(fd) })
	return hungUp || err != nil
}

// isHungUp reports whether the other end is closed, even if there is unread data.
func isHungUp(fd uintptr) bool {
	events, err := kernfile.Poll(int(fd), unix.POLLRDHUP, 0)
	return events != 0 || err != nil // on error permit nothing more
}
