package hostcall

import (
	"context"
	"sync"
	"time"
)

// callContext is the run's context with the deadline of a call. It is derived when the function first uses it,
// because most never do, and deriving it takes 15 % of a call.
type callContext struct {
	run      context.Context
	deadline time.Time
	late     error // the cause after the deadline

	mu      sync.Mutex
	derived context.Context
	cancel  context.CancelFunc
}

func (c *callContext) get() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.derived == nil {
		c.derived, c.cancel = context.WithDeadlineCause(c.run, c.deadline, c.late)
	}
	return c.derived
}

// end cancels the context: the function has returned.
func (c *callContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.derived == nil {
		c.derived, c.cancel = context.WithCancel(context.WithoutCancel(c.run))
	}
	c.cancel()
}

func (c *callContext) Deadline() (time.Time, bool) { return c.get().Deadline() } // may be the run's
func (c *callContext) Done() <-chan struct{}       { return c.get().Done() }
func (c *callContext) Err() error                  { return c.get().Err() }
func (c *callContext) Value(key any) any           { return c.get().Value(key) }
