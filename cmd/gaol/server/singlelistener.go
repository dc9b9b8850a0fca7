package server

import (
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// singleListener accepts one connection, and fails once that is closed.
type singleListener struct {
	conn  chan net.Conn
	ended chan struct{}
	end   func() // closes ended
}

func newSingleListener(c *net.UnixConn) *singleListener {
	l := &singleListener{conn: make(chan net.Conn, 1), ended: make(chan struct{})}
	l.end = sync.OnceFunc(func() { close(l.ended) })
	l.conn <- &singleConn{c, l.end}
	return l
}

// Accept implements [net.Listener].
func (l *singleListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.ended:
		return nil, io.EOF
	}
}

// Close implements [net.Listener].
func (l *singleListener) Close() error {
	l.end()
	return nil
}

// Addr implements [net.Listener].
func (l *singleListener) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// singleConn calls end when it is closed.
type singleConn struct {
	*net.UnixConn
	end func()
}

// Close implements [net.Conn].
func (c *singleConn) Close() error {
	defer c.end()
	return c.UnixConn.Close()
}

// watchHangup calls end when the other end of a connection is closed, even if nothing reads from it
// because of an unread request body. The caller calls stop, which ends the connection.
func watchHangup(c *net.UnixConn, end func()) (stop func(), err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var own int // the descriptor of c may be closed, and its number used again
	var failed error
	if err := raw.Control(func(fd uintptr) { own, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for err := error(unix.EINTR); err == unix.EINTR; {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(own)}}, -1) // hang-ups are always reported
		}
		end()
	}()
	return func() {
		_ = unix.Shutdown(own, unix.SHUT_RDWR) // which is a hang-up
		<-watching
		_ = unix.Close(own)
	}, nil
}
