package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"
)

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
	size, err := f.size(s.Peer)
	if err != nil {
		return f, err
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

// Buffer is the receiving end of a stream: Add stores bytes that arrive, and Read returns them. Add
// and Read may be called concurrently.
type Buffer struct {
	// Return returns credit to the sender. It is called by Read.
	Return func(bytes uint32)

	// Hold reserves memory for bytes that arrive, and releases it if their number is negative. Nil: no reservation.
	Hold func(bytes int) error

	mu     sync.Mutex
	filled sync.Cond
	data   []byte
	err    error // after the data
	used   int64 // bytes for which no credit was returned
	debt   Debt
}

// NewBuffer returns an empty buffer. The caller sets its fields.
func NewBuffer() *Buffer {
	b := &Buffer{}
	b.filled.L = &b.mu
	return b
}

// Add stores a piece, which it copies. The error wraps [ErrFrame] if the sender had no credit, or is Hold's error.
// Pieces that arrive after Close are dropped.
func (b *Buffer) Add(piece []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil
	}
	if b.used >= Window {
		return fmt.Errorf("%w: bytes without credit", ErrFrame)
	}
	if err := b.hold(len(piece)); err != nil {
		return err
	}
	b.used += int64(len(piece))
	b.data = append(b.data, piece...)
	b.filled.Broadcast()
	return nil
}

// Close makes Read return an error after the data; nil means [io.EOF]. Later calls have no effect.
func (b *Buffer) Close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		if err == nil {
			err = io.EOF
		}
		b.err = err
		b.filled.Broadcast()
	}
}

// Discard closes the buffer, and drops its data.
func (b *Buffer) Discard() {
	b.Close(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.hold(-len(b.data)) // cannot fail
	b.data = nil
}

func (b *Buffer) hold(bytes int) error {
	if b.Hold == nil {
		return nil
	}
	return b.Hold(bytes)
}

// Read waits for data, or for Close.
func (b *Buffer) Read(p []byte) (n int, err error) {
	n, due, err := b.read(p)
	if due > 0 {
		b.Return(due)
	}
	return n, err
}

func (b *Buffer) read(p []byte) (n int, due uint32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) == 0 {
		return 0, 0, nil
	}
	for len(b.data) == 0 && b.err == nil {
		b.filled.Wait()
	}
	if len(b.data) == 0 {
		return 0, 0, b.err
	}
	n = copy(p, b.data)
	b.data = b.data[n:]
	_ = b.hold(-n) // cannot fail
	if len(b.data) == 0 {
		b.data = nil // the array is not reused: an idle stream costs nothing
	}
	if due = b.debt.Processed(n); b.err != nil {
		due = 0 // nothing more arrives
	}
	b.used -= int64(due)
	return n, due, nil
}
