package mux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Bounds of a session.
const (
	Window  = 256 << 10 // bytes that a sender may send before the receiver returns credit
	MaxData = 32 << 10  // bytes of a frame

	// maxAccepts bounds the streams that wait for Accept.
	maxAccepts = 1024

	// writeTimeout is how long the other side may not read.
	writeTimeout = 30 * time.Second

	headSize = 9
)

type kind byte

const (
	kindOpen kind = iota + 1
	kindData
	kindCredit
	kindEnd
	kindStop
	kindReset
)

// lengths are the lengths that a frame of a kind may have.
var lengths = map[kind]struct{ least, most uint32 }{
	kindOpen: {}, kindData: {1, MaxData}, kindCredit: {4, 4}, kindEnd: {}, kindStop: {}, kindReset: {},
}

var (
	// ErrFrame is wrapped by errors about frames that are not allowed.
	ErrFrame = errors.New("mux: frame not allowed")

	// ErrEnded is wrapped by errors of streams whose session has ended.
	ErrEnded = errors.New("mux: the session has ended")
)

// Session is one side of a connection. It is safe for concurrent use.
type Session struct {
	conn    net.Conn
	opens   bool
	accepts chan *Stream
	ended   chan struct{}

	writing sync.Mutex
	frame   []byte // guarded by writing

	mu      sync.Mutex
	streams map[uint32]*Stream
	last    uint32 // stream that was opened
	err     error  // why the session has ended
}

// Client returns the side that opens streams. The session closes the connection when it ends.
func Client(conn net.Conn) *Session { return newSession(conn, true) }

// Server returns the side that accepts streams.
func Server(conn net.Conn) *Session { return newSession(conn, false) }

func newSession(conn net.Conn, opens bool) *Session {
	s := &Session{conn: conn, opens: opens, accepts: make(chan *Stream, maxAccepts), ended: make(chan struct{}), streams: map[uint32]*Stream{}}
	go func() { s.end(s.receive()) }()
	return s
}

// Open opens a stream. The caller closes it.
func (s *Session) Open() (*Stream, error) {
	s.writing.Lock() // so that numbers rise on the wire
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.err != nil || s.last == ^uint32(0) {
		defer s.mu.Unlock()
		return nil, errors.Join(ErrEnded, s.err)
	}
	s.last++
	stream := s.add(s.last)
	s.mu.Unlock()
	return stream, s.write(kindOpen, stream.id, nil)
}

// Accept returns the next stream that the other side has opened. The caller closes it.
func (s *Session) Accept() (*Stream, error) {
	select {
	case stream := <-s.accepts:
		return stream, nil
	case <-s.ended:
		return nil, s.Err()
	}
}

// Done is closed when the session has ended, and Err returns the reason then.
func (s *Session) Done() <-chan struct{} { return s.ended }

// Err returns why the session has ended, nil before.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session and its streams.
func (s *Session) Close() error {
	s.end(net.ErrClosed)
	return nil
}

func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = fmt.Errorf("%w: %w", ErrEnded, err)
	_ = s.conn.Close() // the streams report the reason
	close(s.ended)
	for _, stream := range s.streams {
		stream.fail(s.err)
	}
	clear(s.streams)
}

// add adds a stream.
//
// Preconditions: s.mu is held.
func (s *Session) add(id uint32) *Stream {
	stream := &Stream{session: s, id: id, credit: Window, stopped: make(chan struct{})}
	stream.changed.L = &stream.mu
	s.streams[id] = stream
	return stream
}

func (s *Session) remove(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, id)
}

// send writes a frame.
func (s *Session) send(k kind, id uint32, body []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.write(k, id, body)
}

// write writes a frame. After an error the session has ended.
//
// Preconditions: s.writing is held.
func (s *Session) write(k kind, id uint32, body []byte) error {
	s.frame = append(s.frame[:0], byte(k))
	s.frame = binary.BigEndian.AppendUint32(s.frame, id)
	s.frame = binary.BigEndian.AppendUint32(s.frame, uint32(len(body)))
	s.frame = append(s.frame, body...)
	err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = s.conn.Write(s.frame)
	}
	if err != nil {
		s.end(err)
		return s.Err()
	}
	return nil
}

// receive handles the frames of the other side until an error.
func (s *Session) receive() error {
	r := bufio.NewReaderSize(s.conn, headSize+MaxData)
	for {
		head, err := r.Peek(headSize)
		if err != nil {
			return err
		}
		k, id, length := kind(head[0]), binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
		bounds, known := lengths[k]
		if !known || length < bounds.least || length > bounds.most {
			return fmt.Errorf("%w: kind %d of %d bytes", ErrFrame, k, length)
		}
		frame, err := r.Peek(headSize + int(length))
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = s.handle(k, id, frame[headSize:])
		}
		if err != nil {
			return err
		}
		_, _ = r.Discard(len(frame)) // they are buffered
	}
}

// handle handles a frame. Frames of streams that this side has closed are dropped.
func (s *Session) handle(k kind, id uint32, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k == kindOpen {
		if s.opens || id != s.last+1 {
			return fmt.Errorf("%w: open of stream %d", ErrFrame, id)
		}
		s.last = id
		select {
		case s.accepts <- s.add(id):
			return nil
		default:
			return fmt.Errorf("%w: more than %d streams wait", ErrFrame, maxAccepts)
		}
	}
	stream := s.streams[id]
	switch {
	case id == 0 || id > s.last:
		return fmt.Errorf("%w: stream %d was not opened", ErrFrame, id)
	case stream == nil:
		return nil
	}
	return stream.handle(k, body)
}
