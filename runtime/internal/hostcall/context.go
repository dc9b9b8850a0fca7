package hostcall

import (
	"context"
	"sync"
	"time"

	"gaol/internal/wire"
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

// pendingCall is a call from its admission to its answer.
type pendingCall struct {
	wire.Call
	key      uint64     // ID, or a larger number for a call of Do
	name     string     // of the function
	size     int        // of the arguments
	other    *otherCall // nil for a call on the control channel
	began    time.Time
	index    int // of its record; -1: it has none
	answered bool
	ctx      callContext
}

// begin sets the fields that all calls have.
func (d *Dispatcher) begin(p *pendingCall) *pendingCall {
	p.began, p.index = time.Now(), -1
	p.ctx.run, p.ctx.deadline, p.ctx.late = d.ctx, p.began.Add(d.limits.Timeout), d.late
	return p
}
