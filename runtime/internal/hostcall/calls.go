package hostcall

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gaol/internal/wire"
)

// Record describes a call. Its fields are those of runtime.Call.
type Record struct {
	Name      string
	Duration  time.Duration
	Arguments int
	Result    int
	Error     string
}

// Limits bound the calls of a run. All fields are set.
type Limits struct {
	Calls      int           // calls of the run, answered or not
	Concurrent int           // functions that run at once, at most MaxPending
	Arguments  int64         // bytes of the JSON of one call's arguments
	Result     int64         // bytes of the JSON of one result
	Timeout    time.Duration // of one call, including its time in the queue
}

const (
	// MaxPending is the maximum number of a run's calls without an answer. The guest's half
	// sends at most 256 at once, of which one blocks the guest.
	MaxPending = 1024

	// maxPendingBytes is the size of their arguments at which the guest's half stops sending
	// more. It may exceed that by one call, and by one that blocks the guest.
	maxPendingBytes = 32 << 20

	// maxRecords is how many calls Records returns.
	maxRecords = 1000

	// Unanswered is Record.Error of a call that has not returned.
	Unanswered = "the run ended first"

	// grace is how long Stop waits for functions that were called just before: Go may need
	// that long to schedule the first line of one.
	grace = 200 * time.Millisecond
)

// Calls performs the calls of one run. Its methods may be called from several goroutines at
// once.
type Calls struct {
	ctx       context.Context // the run's
	cancel    context.CancelFunc
	functions []Function
	limits    Limits
	codeOf    func(error) string
	out       *Writer
	late      error  // the error of calls that take too long
	read      func() // takes over reading the control channel while its reader performs a call

	mu      sync.Mutex
	more    sync.Cond // signals workers: a queued call, or stopped
	queue   []*pendingCall
	workers int
	idle    int // workers that wait
	running int // functions that have been called and have not returned
	newest  time.Time
	inline  inline
	stopped bool
	quiet   sync.Cond // signals Stop: a function has returned

	pending    map[uint32]*pendingCall // calls without an answer
	bytes      int                     // of their arguments
	alarm      *time.Timer             // for the first of them that is late; nil: not set
	count      int
	first      int // index of the first record: each cell of a context begins a new list
	records    []Record
	observe    func(Record) // may be nil
	wait       func()       // blocks while the observer is behind; may be nil
	unfinished []unfinished // after Stop: calls that had no answer
}

// pendingCall is a call from its admission to its answer.
type pendingCall struct {
	wire.Call
	began    time.Time
	index    int // of its record; -1: it has none
	answered bool
	ctx      callContext
}

// unfinished is a call that the run's end cut off.
type unfinished struct {
	Record
	index int
}

// New returns the calls of a run whose context is ctx. codeOf returns the code that a guest
// sees for an error of a function, or "".
func New(ctx context.Context, functions []Function, l Limits, out *Writer, codeOf func(error) string) *Calls {
	c := &Calls{functions: functions, limits: l, codeOf: codeOf, out: out, pending: map[uint32]*pendingCall{}}
	c.more.L, c.quiet.L = &c.mu, &c.mu
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.late = &Error{CodeTimeout, fmt.Sprintf("the host function took longer than %v", l.Timeout)}
	return c
}

// ReadWith sets the function that reads the control channel while the goroutine that called
// Accept is busy with a call. It must be called before Accept.
func (c *Calls) ReadWith(read func()) { c.read = read }

// MaxFrame returns the maximum size of a call's frame.
func (c *Calls) MaxFrame() int64 { return c.limits.Arguments + 8 }

// Observe calls f with each call that has been answered or cut off, including
// earlier ones that have records. wait is called before a call is accepted, and
// blocks while f's consumer is behind. f must not block.
func (c *Calls) Observe(f func(Record), wait func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := map[int]bool{}
	for _, p := range c.pending {
		open[p.index] = true
	}
	for _, u := range c.unfinished {
		open[u.index] = true
	}
	for i, r := range c.records {
		if !open[c.first+i] {
			f(r)
		}
	}
	c.observe, c.wait = f, wait
	for _, u := range c.unfinished {
		f(u.Record)
	}
}

// Accept starts a call. If refused is not nil, the call is answered with that error. If
// blocking is true, the guest waits for this call, and Accept may perform it before it
// returns. The error is ErrHandedOver, or a violation of the protocol.
func (c *Calls) Accept(call wire.Call, blocking bool, refused error) error {
	if int64(call.Function) >= int64(len(c.functions)) {
		return fmt.Errorf("%w: a call of function %d", wire.ErrFrame, call.Function)
	}
	c.waitForObserver()
	p := &pendingCall{Call: call, began: time.Now(), index: -1}
	p.ctx.run, p.ctx.deadline, p.ctx.late = c.ctx, p.began.Add(c.limits.Timeout), c.late
	if inline, err := c.admit(p, blocking, refused); !inline {
		return err
	}
	return c.performInline(p)
}

func (c *Calls) waitForObserver() {
	c.mu.Lock()
	wait := c.wait
	c.mu.Unlock()
	if wait != nil {
		wait()
	}
}

// admit queues a call or reports that the caller should perform it.
func (c *Calls) admit(p *pendingCall, blocking bool, refused error) (inline bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped || c.ctx.Err() != nil: // Stop has been or will be called
		return false, nil
	case c.pending[p.ID] != nil:
		return false, fmt.Errorf("%w: call %d twice", wire.ErrFrame, p.ID)
	case c.count >= c.limits.Calls:
		refused = &Error{CodeManyCalls, fmt.Sprintf("more than %d calls of host functions", c.limits.Calls)}
	case len(c.pending) >= MaxPending || int64(c.bytes+len(p.Args)) > maxPendingBytes+2*c.limits.Arguments:
		refused = &Error{CodeManyCalls, "too many calls of host functions at once"}
	}
	c.add(p)
	if refused != nil {
		return false, c.refuse(p, refused)
	}
	if c.alarm == nil {
		c.alarm = time.AfterFunc(c.limits.Timeout, c.expire)
	}
	if blocking && len(c.queue) == 0 && c.busy() < c.limits.Concurrent {
		c.beginInline(p)
		return true, nil
	}
	c.enqueue(p)
	return false, nil
}

// add counts a call and adds it to the pending ones.
//
// Preconditions: c.mu is held.
func (c *Calls) add(p *pendingCall) {
	c.count++
	c.pending[p.ID] = p
	c.bytes += len(p.Args)
	if len(c.records) < maxRecords {
		p.index = c.first + len(c.records)
		c.records = append(c.records, c.unanswered(p))
	}
}

// busy returns how many goroutines perform a call or wait to write its answer.
//
// Preconditions: c.mu is held.
func (c *Calls) busy() int { return c.inline.running + c.workers - c.idle }

// enqueue passes a call to a worker.
//
// Preconditions: c.mu is held.
func (c *Calls) enqueue(p *pendingCall) {
	c.queue = append(c.queue, p)
	switch {
	case len(c.queue) <= c.idle:
		c.more.Signal()
	case c.workers < c.limits.Concurrent:
		c.workers++
		go c.work()
	}
}

// refuse answers a call without its function. It does not wait for the guest: the error
// means that the guest does not read its answers.
//
// Preconditions: c.mu is held.
func (c *Calls) refuse(p *pendingCall, err error) error {
	if c.finish(p, 0, err) && !c.out.TryAnswer(p.ID, true, c.errorText(err)) {
		return fmt.Errorf("%w: so many calls, and no answer is read", wire.ErrFrame)
	}
	return nil
}

// finish records the end of a call. It must precede the answer, after which the guest may
// use the number again and the caller may look for the record. It returns false if the call
// was answered before or the run has ended.
//
// Preconditions: c.mu is held.
func (c *Calls) finish(p *pendingCall, size int, err error) bool {
	if p.answered || c.stopped || c.ctx.Err() != nil {
		return false
	}
	p.answered = true
	delete(c.pending, p.ID)
	c.bytes -= len(p.Args)
	r := Record{Name: c.functions[p.Function].Name(), Duration: time.Since(p.began), Arguments: len(p.Args), Result: size}
	if err != nil {
		r.Error = err.Error()
	}
	if p.index >= c.first { // otherwise it has no record, or one in the list of an earlier cell
		c.records[p.index-c.first] = r
	}
	if c.observe != nil {
		c.observe(r)
	}
	return true
}

// expire answers late calls and sets the alarm for the next one. One timer serves all calls,
// because few are ever late.
func (c *Calls) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alarm = nil; c.stopped {
		return
	}
	next := c.limits.Timeout
	for _, p := range c.pending {
		if left := time.Until(p.ctx.deadline); left > 0 {
			next = min(next, left)
		} else if c.refuse(p, c.late) != nil {
			c.out.Close()
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(p *pendingCall) bool { return p.answered })
	if len(c.pending) > 0 {
		c.alarm = time.AfterFunc(next, c.expire)
	}
}

// unanswered returns the record of a call that has no answer.
func (c *Calls) unanswered(p *pendingCall) Record {
	return Record{Name: c.functions[p.Function].Name(), Arguments: len(p.Args), Error: Unanswered}
}

// Stop prevents further calls. It does not wait for running functions, unless they were
// called just before. It is idempotent, and may be called on nil.
func (c *Calls) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.cutOff()
	}
	c.stopped, c.queue, c.pending = true, nil, nil // a stopped timer may keep c alive for long
	c.cancel()
	c.more.Broadcast()
	if c.alarm != nil {
		c.alarm.Stop()
	}
	if left := grace - time.Since(c.newest); c.running > 0 && left > 0 {
		over := time.AfterFunc(left, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.quiet.Broadcast()
		})
		defer over.Stop()
		for c.running > 0 && time.Since(c.newest) < grace {
			c.quiet.Wait()
		}
	}
}

// cutOff records the calls that have no answer.
//
// Preconditions: c.mu is held.
func (c *Calls) cutOff() {
	for _, id := range slices.Sorted(maps.Keys(c.pending)) {
		p := c.pending[id]
		u := unfinished{c.unanswered(p), p.index}
		c.unfinished = append(c.unfinished, u)
		if c.observe != nil {
			c.observe(u.Record)
		}
	}
}

// Records returns the calls in the order in which they arrived. truncated reports whether
// some are missing.
func (c *Calls) Records() (list []Record, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.records), c.count > len(c.records)
}

// Reset begins a new list of at most so many calls. It does not affect running calls.
func (c *Calls) Reset(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits.Calls = most
	c.first += len(c.records)
	c.count, c.records = 0, nil
}
