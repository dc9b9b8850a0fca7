package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gaol/internal/wire"
)

// Call is a call of a host function, as Result tells of it.
type Call struct {
	Name      string        `json:"name"` // such as "api.get"
	Duration  time.Duration `json:"-"`    // wall-clock time on the host, its turn included
	Arguments int           `json:"-"`    // bytes of their JSON
	Result    int           `json:"-"`    // bytes of its JSON; of a call that failed 0
	Error     string        `json:"-"`    // what the guest was told, or why its result is no JSON; empty if it succeeded
}

const (
	// mostPending is how many calls of a run may wait for an answer. The guest's half
	// has no more than 256 under way, of which one stops the guest.
	mostPending = 1024

	// mostPendingBytes is how many bytes their arguments may have together before the
	// guest's half has no more of them under way. It goes beyond that by one call, and
	// by one that stops the guest.
	mostPendingBytes = 32 << 20

	// mostListed is how many calls Result tells of.
	mostListed = 1000

	unanswered = "the run ended first" // Call.Error of what has not returned

	// lastTurn is how long the end waits for functions that have just been called: Go
	// may take its time with the first line of one.
	lastTurn = 200 * time.Millisecond
)

// calls performs a run's calls of host functions. The control channel is always read,
// whatever goes on here: what is too much is answered with an error, so that a guest
// and its host can't wait for each other. Only one who follows the run, and is slow, is
// waited for.
//
//	control.read -- take --> queue --> work, CallLimits.Concurrent at most --> outbox
//	                |  |                                                         |
//	                |  +-- ask: performed by who reads, as the guest waits ------+
//	                +-- refused --------- expire --------------------------------+
type calls struct {
	ctx       context.Context // the run's
	cancel    context.CancelFunc
	functions []hostFunction
	limits    CallLimits
	out       *outbox
	late      error  // what is said of a call that takes too long
	read      func() // reads the control channel, in place of who does

	mu      sync.Mutex
	more    sync.Cond // the queue has one more, or the run has ended
	queue   []*pendingCall
	workers int
	idle    int // workers that wait for more
	running int // functions that have been called, and go on
	newest  time.Time
	here    relief // of the goroutine that reads, while it performs a call
	ended   bool
	quiet   sync.Cond // the run has ended, and one function less is running

	pending map[uint32]*pendingCall // those that have no answer yet
	bytes   int                     // of the arguments of what is pending
	alarm   *time.Timer             // for the first of them that is late; nil: there was none
	count   int
	first   int // place of the list's first: a context begins a new list for each cell
	list    []Call
	feed    *feed      // nil while nobody follows
	left    []leftCall // once it has ended: what had no answer
}

// pendingCall is a call from its admission to its answer.
type pendingCall struct {
	wire.Call
	began   time.Time
	place   int // in the list; -1: it is not listed
	settled bool
	ctx     callContext
}

func newCalls(ctx context.Context, functions []hostFunction, limits CallLimits, out *outbox) *calls {
	c := &calls{functions: functions, limits: limits, out: out, pending: map[uint32]*pendingCall{}}
	c.more.L, c.quiet.L = &c.mu, &c.mu
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.late = &CallError{CodeTimeout, fmt.Sprintf("the host function took longer than %v", limits.Timeout)}
	return c
}

// take begins to perform a call, or has it answered with refused, if that is not nil. One
// that is waited for may be over when it returns. An error is errRelieved, or a guest's that
// does not keep to the protocol.
func (c *calls) take(call wire.Call, waits bool, refused error) error {
	if int64(call.Function) >= int64(len(c.functions)) {
		return fmt.Errorf("%w: a call of function %d", wire.ErrFrame, call.Function)
	}
	c.room()
	p := &pendingCall{Call: call, began: time.Now(), place: -1}
	p.ctx.run, p.ctx.deadline, p.ctx.late = c.ctx, p.began.Add(c.limits.Timeout), c.late
	if here, err := c.accept(p, waits, refused); !here {
		return err
	}
	return c.ask(p)
}

// accept has a call performed by a worker, or says that it's to be performed here.
func (c *calls) accept(p *pendingCall, waits bool, refused error) (here bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended || c.ctx.Err() != nil: // it is over, and end will come
		return false, nil
	case c.pending[p.ID] != nil:
		return false, fmt.Errorf("%w: call %d twice", wire.ErrFrame, p.ID)
	case c.count >= c.limits.Calls:
		refused = &CallError{CodeManyCalls, fmt.Sprintf("more than %d calls of host functions", c.limits.Calls)}
	case len(c.pending) >= mostPending || int64(c.bytes+len(p.Args)) > mostPendingBytes+2*c.limits.Arguments:
		refused = &CallError{CodeManyCalls, "too many calls of host functions at once"}
	}
	c.admit(p)
	if refused != nil {
		return false, c.refuse(p, refused)
	}
	if c.alarm == nil {
		c.alarm = time.AfterFunc(c.limits.Timeout, c.expire)
	}
	if waits && len(c.queue) == 0 && c.busy() < c.limits.Concurrent {
		c.leave(p)
		return true, nil
	}
	c.enqueue(p)
	return false, nil
}

// admit counts a call and has it pending.
//
// Preconditions: c.mu is held.
func (c *calls) admit(p *pendingCall) {
	c.count++
	c.pending[p.ID] = p
	c.bytes += len(p.Args)
	if len(c.list) < mostListed {
		p.place = c.first + len(c.list)
		c.list = append(c.list, c.cut(p))
	}
}

// busy is how many goroutines perform a call, or wait with its answer.
//
// Preconditions: c.mu is held.
func (c *calls) busy() int { return c.here.asked + c.workers - c.idle }

// enqueue has a worker perform a call.
//
// Preconditions: c.mu is held.
func (c *calls) enqueue(p *pendingCall) {
	c.queue = append(c.queue, p)
	switch {
	case len(c.queue) <= c.idle:
		c.more.Signal()
	case c.workers < c.limits.Concurrent:
		c.workers++
		go c.work()
	}
}

// refuse answers a call in place of its function. It does not wait for the guest: an
// error is one that does not read its answers.
//
// Preconditions: c.mu is held.
func (c *calls) refuse(p *pendingCall, err error) error {
	if c.settle(p, 0, err) && !c.out.post(p.ID, true, errorText(err)) {
		return fmt.Errorf("%w: so many calls, and no answer is read", wire.ErrFrame)
	}
	return nil
}

// settle has a call be over, before its answer is sent: who has that may use its number
// again, and finds it in the list. It reports false if it was over, or the run is.
//
// Preconditions: c.mu is held.
func (c *calls) settle(p *pendingCall, size int, err error) bool {
	if p.settled || c.ended || c.ctx.Err() != nil {
		return false
	}
	p.settled = true
	delete(c.pending, p.ID)
	c.bytes -= len(p.Args)
	done := Call{Name: c.functions[p.Function].name(), Duration: time.Since(p.began), Arguments: len(p.Args), Result: size}
	if err != nil {
		done.Error = err.Error()
	}
	if p.place >= c.first { // else it is not listed, or in the list of an earlier cell
		c.list[p.place-c.first] = done
	}
	if c.feed != nil {
		c.feed.call(done)
	}
	return true
}

// expire answers what is late, and sets the alarm for what may be next. It is one alarm
// for all, as few are ever late.
func (c *calls) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alarm = nil; c.ended {
		return
	}
	next := c.limits.Timeout
	for _, p := range c.pending {
		if left := time.Until(p.ctx.deadline); left > 0 {
			next = min(next, left)
		} else if c.refuse(p, c.late) != nil {
			c.out.close()
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(p *pendingCall) bool { return p.settled })
	if len(c.pending) > 0 {
		c.alarm = time.AfterFunc(next, c.expire)
	}
}

// cut is what there is to tell of a call that the run's end cuts off.
func (c *calls) cut(p *pendingCall) Call {
	return Call{Name: c.functions[p.Function].name(), Arguments: len(p.Args), Error: unanswered}
}

// end lets no function be called any more. Functions that go on are not waited for,
// unless they have just been called.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.cutOff()
	}
	c.ended, c.queue, c.pending = true, nil, nil // Go may keep a stopped timer, and so c, for long
	c.cancel()
	c.more.Broadcast()
	if c.alarm != nil {
		c.alarm.Stop()
	}
	if left := lastTurn - time.Since(c.newest); c.running > 0 && left > 0 {
		over := time.AfterFunc(left, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.quiet.Broadcast()
		})
		defer over.Stop()
		for c.running > 0 && time.Since(c.newest) < lastTurn {
			c.quiet.Wait()
		}
	}
}

// listed are those that there were, in the order in which they came.
func (c *calls) listed() (list []Call, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list), c.count > len(c.list)
}

// renew begins a new list, of at most so many calls. What is under way goes on.
func (c *calls) renew(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits.Calls = most
	c.first += len(c.list)
	c.count, c.list = 0, nil
}
