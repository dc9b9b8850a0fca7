package hostcall

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of one call: the run's context with the call's deadline. Most
// host functions return quickly and never look at it, so the timer is created lazily: creating
// it takes 4 to 5 % of a call.
type callContext struct {
	run      context.Context
	deadline time.Time
	late     error // the cause after the deadline

	mu       sync.Mutex
	inner    context.Context
	cancel   context.CancelFunc
	returned bool
}

func (c *callContext) get() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithDeadlineCause(c.run, c.deadline, c.late)
		if c.returned {
			c.cancel()
		}
	}
	return c.inner
}

// stop cancels the context once the function has returned.
func (c *callContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = true
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *callContext) Deadline() (time.Time, bool) { return c.get().Deadline() } // may be the run's
func (c *callContext) Done() <-chan struct{}       { return c.get().Done() }
func (c *callContext) Err() error                  { return c.get().Err() }
func (c *callContext) Value(key any) any           { return c.get().Value(key) }
