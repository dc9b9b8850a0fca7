package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"
)

// Socket sends and receives the frames of one side of a session. Its methods are safe for concurrent
// use, except for Receive.
type Socket struct {
	*websocket.Conn

	// Peer is the other side.
	Peer Side

	// Ended is the context of the session: after its end nothing is sent.
	Ended context.Context

	// WriteTimeout is how long the other side may not read.
	WriteTimeout time.Duration

	// MessageTimeout is how long the other side may take to send a message. Zero: without a limit.
	MessageTimeout time.Duration

	// Reserve reserves memory for the body of a message. The body is dropped if there is an error. Nil: no reservation.
	Reserve func(bytes int) (release func(), err error)

	// Failed ends the session, because a frame could not be written.
	Failed func(error)

	writing chan struct{} // holds a value while a frame is written
}

// NewSocket returns a socket that receives the frames of peer. The caller sets the other fields.
func NewSocket(c *websocket.Conn, peer Side) *Socket {
	return &Socket{Conn: c, Peer: peer, writing: make(chan struct{}, 1)}
}

// Send writes a frame when it is its turn. The error is the cause of ctx, or of the session's end.
func (s *Socket) Send(ctx context.Context, frame []byte) error {
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Ended.Done():
		return context.Cause(s.Ended)
	}
	defer func() { <-s.writing }()
	limit, cancel := context.WithTimeout(context.Background(), s.WriteTimeout) // not ctx: half a frame would end the session
	defer cancel()
	if err := s.Write(limit, websocket.MessageBinary, frame); err != nil {
		s.Failed(err)
		return context.Cause(s.Ended)
	}
	return nil
}

// firstBuffer is how many bytes of a body are allocated before any have arrived.
const firstBuffer = 4 << 10

// ErrSlow is the error of a message that did not arrive within the time limit.
var ErrSlow = errors.New("a message did not arrive in time")

// Receive passes frames to handle until the first error, its or the connection's. It wraps [ErrFrame]
// if the peer breaks the protocol, and [ErrSlow] if a message takes too long. handle, or the function to
// which it passes a frame, calls Release when it does not need the body any more.
func (s *Socket) Receive(handle func(Frame) error) error {
	for {
		f, err := s.receive()
		if err == nil {
			err = handle(f)
		}
		if err != nil {
			return err
		}
	}
}

// receive waits for a message without a limit, and reads it within bounds.
func (s *Socket) receive() (f Frame, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kind, r, err := s.Reader(ctx) // until the socket is closed
	if err != nil {
		return f, err
	}
	if kind != websocket.MessageBinary {
		return f, fmt.Errorf("%w: a text message", ErrFrame)
	}
	if s.MessageTimeout > 0 {
		defer time.AfterFunc(s.MessageTimeout, cancel).Stop()
	}
	f, err = s.frame(r)
	if err != nil {
		f.Release()
		if ctx.Err() != nil {
			err = ErrSlow
		}
	}
	return f, err
}

// frame reads a message as a frame.
func (s *Socket) frame(r io.Reader) (f Frame, err error) {
	var head [headSize]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("%w: %d bytes", ErrFrame, n)
		}
		return f, err
	}
	f = Frame{Kind: Kind(head[0]), ID: binary.BigEndian.Uint32(head[1:])}
	size, known := bodies[s.Peer][f.Kind]
	switch {
	case !known:
		return f, fmt.Errorf("%w: kind %d", ErrFrame, f.Kind)
	case f.ID == 0:
		return f, fmt.Errorf("%w: kind %d with id 0", ErrFrame, f.Kind)
	}
	if err := s.body(r, &f, size.most); err != nil || f.Refused != nil {
		return f, err
	}
	return f, f.check(s.Peer, size)
}

// body reads the rest of a message, up to most bytes. It reserves memory before it allocates, and drops the body if the
// reservation fails.
func (s *Socket) body(r io.Reader, f *Frame, most int) error {
	for size := min(firstBuffer, most+1); ; size = min(2*size, most+1) {
		if s.Reserve != nil && most > MaxChunk { // other kinds have their own bounds
			f.Release()
			if f.release, f.Refused = s.Reserve(size); f.Refused != nil {
				f.Body = nil
				_, err := io.Copy(io.Discard, r)
				return err
			}
		}
		had := len(f.Body)
		f.Body = append(make([]byte, 0, size), f.Body...)
		n, err := io.ReadFull(r, f.Body[had:size])
		f.Body = f.Body[:had+n]
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil
		case err != nil:
			return err
		case size > most:
			return fmt.Errorf("%w: kind %d with a body of more than %d bytes", ErrFrame, f.Kind, most)
		}
	}
}
