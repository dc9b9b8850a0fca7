package session

import (
	"context"
	"fmt"
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

// Debt counts the bytes that a receiver has processed and not yet returned as credit. It is not safe
// for concurrent use.
type Debt int

// Processed adds n bytes. It returns how many bytes to return credit for now: none until there are
// some more, because each return is a frame.
func (d *Debt) Processed(n int) uint32 {
	*d += Debt(n)
	if *d < Window/4 {
		return 0
	}
	due := uint32(*d)
	*d = 0
	return due
}
