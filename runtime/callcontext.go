package runtime

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of one call: the run's with the call's deadline. Most host
// functions are quick and never look at theirs, so that it comes to be with the first
// look.
type callContext struct {
	run      context.Context
	deadline time.Time
	late     error // the cause once the deadline is over

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelFunc
	over   bool
}

func (c *callContext) looked() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithDeadlineCause(c.run, c.deadline, c.late)
		if c.over {
			c.cancel()
		}
	}
	return c.inner
}

// end is for when the function has returned.
func (c *callContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *callContext) Deadline() (time.Time, bool) { return c.looked().Deadline() } // which may be the run's
func (c *callContext) Done() <-chan struct{}       { return c.looked().Done() }
func (c *callContext) Err() error                  { return c.looked().Err() }
func (c *callContext) Value(key any) any           { return c.looked().Value(key) }
