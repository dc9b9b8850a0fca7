package session

import (
	"context"
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
