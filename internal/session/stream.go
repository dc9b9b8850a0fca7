package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
)

// Credit is the number of bytes that the sender of a stream may send. Create it with [NewCredit].
type Credit struct {
	mu   sync.Mutex
	left int64
	more chan struct{} // closed when left has become positive
}

// NewCredit returns the credit of a new stream.
func NewCredit() *Credit { return &Credit{left: Window, more: make(chan struct{})} }

// Take waits until some credit is left, and uses as much as a frame with n bytes needs. The error
// is the cause of ctx.
func (c *Credit) Take(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		if c.left > 0 {
			c.left -= int64(n)
			c.mu.Unlock()
			return nil
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Add adds credit that the receiver has returned. The error wraps [ErrFrame] if the sender has not used
// that much.
func (c *Credit) Add(n uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left+int64(n) > Window {
		return fmt.Errorf("%w: more credit than was used", ErrFrame)
	}
	before := c.left
	c.left += int64(n)
	if before <= 0 && c.left > 0 {
		close(c.more)
		c.more = make(chan struct{})
	}
	return nil
}

// Debt is the receiver's account of a stream. It is not safe for concurrent use.
type Debt struct {
	used      int64 // bytes for which no credit was returned
	processed uint32
}

// Receive adds n bytes that have arrived. The error wraps [ErrFrame] if the sender had no credit.
func (d *Debt) Receive(n int) error {
	if d.used >= Window {
		return fmt.Errorf("%w: bytes without credit", ErrFrame)
	}
	d.used += int64(n)
	return nil
}

// Processed adds n bytes. It returns how many bytes to return credit for now: none until there are
// some more, because each return is a frame.
func (d *Debt) Processed(n int) uint32 {
	d.processed += uint32(n)
	if d.processed < Window/4 {
		return 0
	}
	due := d.processed
	d.used, d.processed = d.used-int64(due), 0
	return due
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
	if err := b.debt.Receive(len(piece)); err != nil {
		return err
	}
	if err := b.hold(len(piece)); err != nil {
		return err
	}
	b.data = append(b.data, piece...)
	b.filled.Broadcast()
	return nil
}

// Close makes Read return an error after the data; nil means [io.EOF]. Later calls have no effect.
func (b *Buffer) Close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = cmp.Or(err, io.EOF)
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
	return n, due, nil
}
