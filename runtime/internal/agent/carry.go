package agent

import (
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/internal/mux"
)

// Carry carries bytes between a stream and a socket until both directions have ended, and closes both. A side that is reset resets
// the other one.
func Carry(s *mux.Stream, c net.Conn) {
	done := make(chan struct{})
	var both, watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.Stopped():
			if half, ok := c.(interface{ CloseRead() error }); ok {
				_ = half.CloseRead() // so that writes to a closed end fail, as without a stream between
			}
		case <-done:
		}
	})
	both.Go(func() {
		if _, err := io.Copy(c, s); err != nil && !isClosed(c) { // what a closed side has sent before is still read
			reset(c)
			s.Reset()
		} else if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the other side may have closed it
		}
	})
	switch _, err := io.Copy(s, c); {
	case isClosed(c): // with ECONNRESET, if it has not read everything: data that it has sent must arrive in any case
		_ = s.Close() // the session may have ended
	case err != nil:
		s.Reset()
		reset(c)
	default:
		_ = s.CloseWrite()
	}
	both.Wait()
	close(done)
	watch.Wait()
	_, _ = c.Close(), s.Close() // all has been sent
}

// Pump copies bytes until either end has ended, and closes both.
func Pump(to io.Writer, from io.Reader, ends ...io.Closer) {
	_, _ = io.Copy(to, from)
	for _, end := range ends {
		_ = end.Close() // the other side may have closed it
	}
}

// reset closes a socket, of TCP so that the other side gets ECONNRESET.
func reset(c net.Conn) {
	if t, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0) // it is closed in any case
	}
	_ = c.Close()
}

// isClosed reports whether the other side of a unix socket is closed, rather than only its sending half.
func isClosed(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{}}
	err := kernfile.Control(u, func(fd int) error {
		fds[0].Fd = int32(fd) //nolint:gosec // a descriptor
		_, err := unix.Poll(fds, 0)
		return err
	})
	return err != nil || fds[0].Revents&unix.POLLHUP != 0
}
