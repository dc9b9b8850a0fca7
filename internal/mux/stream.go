package mux

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Stream is a stream of a session. It is a [net.Conn] whose directions end separately.
type Stream struct {
	session *Session
	id      uint32

	sending sync.Mutex // of one Write or CloseWrite

	mu       sync.Mutex
	changed  sync.Cond
	received []byte
	total    int64         // bytes that were ever received
	read     int           // bytes for which no credit was returned yet
	eof      bool          // the other side writes no more
	credit   uint32        // bytes that may be written
	stopped  chan struct{} // closed: the other side reads no more
	ended    bool          // this side writes no more
	closed   bool          // this side has closed the stream
	err      error         // of all operations

	readBy, writeBy deadline
}

// deadline is the time by which operations must have ended.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

// passed reports whether the time has come.
func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set sets a deadline of the stream.
func (s *Stream) set(d *deadline, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at, d.timer = at, nil
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), s.wake)
	}
	s.changed.Broadcast()
}

func (s *Stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// handle handles a frame.
func (s *Stream) handle(k kind, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	switch k {
	case kindData:
		if s.eof || len(s.received)+s.read+len(body) > Window {
			return fmt.Errorf("%w: data beyond the end or the window of a stream", ErrFrame)
		}
		s.received = append(s.received, body...)
		s.total += int64(len(body))
	case kindCredit:
		n := binary.BigEndian.Uint32(body)
		if n > Window-s.credit {
			return fmt.Errorf("%w: credit for %d bytes", ErrFrame, n)
		}
		s.credit += n
	case kindEnd:
		s.eof = true
	case kindStop:
		s.stop()
	case kindReset:
		s.received, s.err = nil, syscall.ECONNRESET
		s.stop()
	}
	return nil
}

// Stopped is closed when the other side reads no more, or this side has closed the stream.
func (s *Stream) Stopped() <-chan struct{} { return s.stopped }

// isStopped reports whether the other side reads no more.
func (s *Stream) isStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// stop closes s.stopped.
//
// Preconditions: s.mu is held.
func (s *Stream) stop() {
	if !s.isStopped() {
		close(s.stopped)
	}
}

// fail ends the stream with an error.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.stop()
	s.changed.Broadcast()
}

// wait waits until ready returns true, and returns the stream's error or that of a deadline.
//
// Preconditions: s.mu is held.
func (s *Stream) wait(d *deadline, ready func() bool) error {
	for {
		switch {
		case s.closed:
			return net.ErrClosed
		case d.passed():
			return os.ErrDeadlineExceeded
		case s.err != nil && !(ready() && !errors.Is(s.err, syscall.ECONNRESET)): // what has arrived can be read
			return s.err
		case ready():
			return nil
		}
		s.changed.Wait()
	}
}

// Read reads bytes, at the end of the stream [io.EOF].
func (s *Stream) Read(p []byte) (n int, err error) {
	s.mu.Lock()
	err = s.wait(&s.readBy, func() bool { return len(s.received) > 0 || s.eof })
	if err == nil && len(s.received) == 0 {
		err = io.EOF
	}
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	n = copy(p, s.received)
	if s.received = s.received[n:]; len(s.received) == 0 {
		s.received = nil
	}
	s.read += n
	credit := s.read
	if returns := credit >= Window/2 && !s.eof; !returns {
		s.mu.Unlock()
		return n, nil
	}
	s.read = 0
	s.mu.Unlock()
	_ = s.session.send(kindCredit, s.id, binary.BigEndian.AppendUint32(nil, uint32(credit))) // later reads report the error
	return n, nil
}

// Received returns how many bytes have arrived, whether they have been read or not.
func (s *Stream) Received() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Write writes bytes when the other side has room. Its error is EPIPE if that reads no more.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	for n < len(p) {
		s.mu.Lock()
		if err = s.wait(&s.writeBy, func() bool { return s.credit > 0 || s.isStopped() || s.ended }); err == nil && (s.isStopped() || s.ended) {
			err = cmp.Or(s.err, error(syscall.EPIPE))
		}
		most := min(s.credit, MaxData, uint32(len(p)-n))
		if err == nil {
			s.credit -= most
		}
		s.mu.Unlock()
		if err == nil {
			err = s.session.send(kindData, s.id, p[n:n+int(most)])
		}
		if err != nil {
			return n, err
		}
		n += int(most)
	}
	return n, nil
}

// CloseWrite ends the direction to the other side.
func (s *Stream) CloseWrite() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	done := s.ended || s.err != nil
	s.ended = true
	s.mu.Unlock()
	if done {
		return nil
	}
	return s.session.send(kindEnd, s.id, nil)
}

// Close ends both directions, and returns nil. Written data arrives. It does not wait, whatever the other side does.
func (s *Stream) Close() error {
	if s.close() {
		go func() {
			if s.CloseWrite() == nil {
				_ = s.session.send(kindStop, s.id, nil) // the session may have ended
			}
			s.session.remove(s.id)
		}()
	}
	return nil
}

// Reset ends both directions. Data that the other side has not read is lost. It does not wait, as Close.
func (s *Stream) Reset() {
	if s.close() {
		go func() {
			_ = s.session.send(kindReset, s.id, nil) // the session may have ended
			s.session.remove(s.id)
		}()
	}
}

// close marks the stream as closed, and reports whether it was open.
func (s *Stream) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := !s.closed
	s.closed, s.received = true, nil
	s.stop()
	s.changed.Broadcast()
	return open
}

// SetReadDeadline implements [net.Conn].
func (s *Stream) SetReadDeadline(at time.Time) error { s.set(&s.readBy, at); return nil }

// SetWriteDeadline implements [net.Conn].
func (s *Stream) SetWriteDeadline(at time.Time) error { s.set(&s.writeBy, at); return nil }

// SetDeadline implements [net.Conn].
func (s *Stream) SetDeadline(at time.Time) error {
	s.set(&s.readBy, at)
	s.set(&s.writeBy, at)
	return nil
}

// LocalAddr implements [net.Conn].
func (s *Stream) LocalAddr() net.Addr { return s.session.conn.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (s *Stream) RemoteAddr() net.Addr { return s.session.conn.RemoteAddr() }
