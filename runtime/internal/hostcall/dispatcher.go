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

// Record describes a call, with the fields of runtime.Call.
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
	Concurrent int           // functions that run concurrently, at most MaxPending
	Arguments  int64         // bytes of the JSON of one call's arguments
	Result     int64         // bytes of the JSON of one result
	Timeout    time.Duration // of one call, including its time in the queue
}

const (
	// MaxPending is the maximum number of a run's pending calls. The guest's half allows at most 256
	// pending calls, of which one blocks the guest.
	MaxPending = 1024

	// maxPendingBytes is the size of their arguments at which the guest's half stops sending
	// more. It may exceed that by one asynchronous call and one blocking call.
	maxPendingBytes = 32 << 20

	// maxRecords is how many calls Records returns.
	maxRecords = 1000

	// Unanswered is Record.Error of a call that has not returned.
	Unanswered = "the run ended first"

	// grace is how long Stop waits for functions that were called just before: Go may need
	// that long to schedule the first line of one.
	grace = 200 * time.Millisecond
)

// Dispatcher performs the calls of one run. It is safe for concurrent use.
type Dispatcher struct {
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

	pending map[uint64]*pendingCall // calls without an answer, by key
	others  uint64                  // calls of Do
	bytes   int                     // of their arguments
	alarm   *time.Timer             // for the first of them that is late; nil: not set
	count   int
	first   int // index of the first record: each cell of a context begins a new list
	records []Record
	observe func(Record) // may be nil
	wait    func()       // blocks while the observer is behind; may be nil
}

// New returns the dispatcher of a run whose context is ctx. codeOf returns the code that a guest
// sees for an error of a function, or "".
func New(ctx context.Context, functions []Function, l Limits, out *Writer, codeOf func(error) string) *Dispatcher {
	d := &Dispatcher{functions: functions, limits: l, codeOf: codeOf, out: out, pending: map[uint64]*pendingCall{}}
	d.more.L, d.quiet.L = &d.mu, &d.mu
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.late = &Error{Message: fmt.Sprintf("the host function took longer than %v", l.Timeout), Code: CodeTimeout}
	return d
}

// ReadWith sets the function that reads the control channel while the goroutine that called
// Accept is busy with a call. It must be called before Accept.
func (d *Dispatcher) ReadWith(read func()) { d.read = read }

// MaxFrame returns the maximum size of a call's frame; 0 refuses it. It may be called on nil.
func (d *Dispatcher) MaxFrame() int64 {
	if d == nil {
		return 0
	}
	return d.limits.Arguments + 8
}

// Observe calls f with each call that has been answered or cut off, including earlier calls with
// records. wait is called before a call is accepted, and blocks while f's consumer is behind. f is
// called with the lock held, so that each call is reported once and in order; f must not block.
func (d *Dispatcher) Observe(f func(Record), wait func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.records {
		if d.stopped || r.Error != Unanswered {
			f(r)
		}
	}
	d.observe, d.wait = f, wait
}

// Accept starts a call. If refused is not nil, the call is answered with that error. If
// blocking is true, the guest waits for this call, and Accept may perform it before it
// returns. The error is ErrHandedOver, or a violation of the protocol.
func (d *Dispatcher) Accept(call wire.Call, blocking bool, refused error) error {
	if int64(call.Function) >= int64(len(d.functions)) {
		return fmt.Errorf("%w: a call of function %d", wire.ErrFrame, call.Function)
	}
	d.waitForObserver() // without the lock, which answers and the end of the run need
	p := d.begin(&pendingCall{Call: call, key: uint64(call.ID), name: d.functions[call.Function].Name(), size: len(call.Args)})
	if inline, err := d.admit(p, blocking, refused); !inline {
		return err
	}
	return d.performInline(p)
}

func (d *Dispatcher) waitForObserver() {
	d.mu.Lock()
	wait := d.wait
	d.mu.Unlock()
	if wait != nil {
		wait()
	}
}

// admit queues a call or reports that the caller should perform it.
func (d *Dispatcher) admit(p *pendingCall, blocking bool, refused error) (inline bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.stopped || d.ctx.Err() != nil: // Stop has been or will be called
		return false, nil
	case d.pending[p.key] != nil:
		return false, fmt.Errorf("%w: call %d twice", wire.ErrFrame, p.ID)
	case d.count >= d.limits.Calls:
		refused = &Error{Message: fmt.Sprintf("more than %d calls of host functions", d.limits.Calls), Code: CodeManyCalls}
	case len(d.pending) >= MaxPending || int64(d.bytes+p.size) > maxPendingBytes+2*d.limits.Arguments:
		refused = &Error{Message: "too many concurrent calls of host functions", Code: CodeManyCalls}
	}
	d.add(p) // also a refused one, so that a guest can't send them without end
	if refused != nil {
		return false, d.refuse(p, refused)
	}
	if d.alarm == nil {
		d.alarm = time.AfterFunc(d.limits.Timeout, d.expire)
	}
	if blocking && len(d.queue) == 0 && d.busy() < d.limits.Concurrent { // it overtakes no other call
		d.beginInline(p)
		return true, nil
	}
	d.enqueue(p)
	return false, nil
}

// add counts a call and adds it to the pending ones.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) add(p *pendingCall) {
	d.count++
	d.pending[p.key] = p
	d.bytes += p.size
	if len(d.records) < maxRecords {
		p.index = d.first + len(d.records)
		d.records = append(d.records, unanswered(p))
	}
}

// busy returns how many goroutines perform a call or wait to write its answer.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) busy() int { return d.inline.running + d.workers - d.idle }

// enqueue passes a call to a worker.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) enqueue(p *pendingCall) {
	d.queue = append(d.queue, p)
	switch {
	case len(d.queue) <= d.idle:
		d.more.Signal()
	case d.workers < d.limits.Concurrent:
		d.workers++
		go d.work()
	}
}

// refuse answers a call without its function. It does not wait for the guest: the error
// means that the guest does not read its answers.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) refuse(p *pendingCall, err error) error {
	if !d.finish(p, 0, err) {
		return nil
	}
	if p.other != nil {
		p.other.answer(err)
	} else if !d.out.TryAnswer(p.ID, true, d.errorText(err)) {
		return fmt.Errorf("%w: so many calls, and no answer is read", wire.ErrFrame)
	}
	return nil
}

// finish records the end of a call. It must precede the answer, after which the guest may
// use the number again and the caller may look for the record. It returns false if the call
// was answered before or the run has ended.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) finish(p *pendingCall, size int, err error) bool {
	if p.answered || d.stopped || d.ctx.Err() != nil {
		return false
	}
	p.answered = true
	delete(d.pending, p.key)
	d.bytes -= p.size
	r := Record{Name: p.name, Duration: time.Since(p.began), Arguments: p.size, Result: size}
	if err != nil {
		r.Error = err.Error()
	}
	if p.index >= d.first { // otherwise its record is missing, or in the list of an earlier cell
		d.records[p.index-d.first] = r
	}
	if d.observe != nil {
		d.observe(r)
	}
	return true
}

// expire answers late calls and sets the alarm for the next one. One timer serves all calls,
// because few are ever late.
func (d *Dispatcher) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.alarm = nil; d.stopped {
		return
	}
	next := d.limits.Timeout
	for _, p := range d.pending {
		if left := time.Until(p.ctx.deadline); left > 0 {
			next = min(next, left)
		} else if d.refuse(p, d.late) != nil {
			d.out.Close()
		}
	}
	d.queue = slices.DeleteFunc(d.queue, func(p *pendingCall) bool { return p.answered })
	if len(d.pending) > 0 {
		d.alarm = time.AfterFunc(next, d.expire)
	}
}

// unanswered returns the record of a call that the end of the run cut off.
func unanswered(p *pendingCall) Record {
	return Record{Name: p.name, Arguments: p.size, Error: Unanswered}
}

// Stop prevents further calls. It does not wait for running functions, unless they were
// called just before. It is idempotent, and may be called on nil.
func (d *Dispatcher) Stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(d.pending)) { // none the second time
		if d.observe != nil {
			d.observe(unanswered(d.pending[id]))
		}
	}
	d.stopped, d.queue, d.pending = true, nil, nil // a stopped timer may keep d alive for long
	d.cancel()
	d.more.Broadcast()
	if d.alarm != nil {
		d.alarm.Stop()
	}
	if left := grace - time.Since(d.newest); d.running > 0 && left > 0 {
		over := time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.quiet.Broadcast()
		})
		defer over.Stop()
		for d.running > 0 && time.Since(d.newest) < grace {
			d.quiet.Wait()
		}
	}
}

// Records returns the calls in the order in which they arrived. truncated reports whether
// some are missing.
func (d *Dispatcher) Records() (list []Record, truncated bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.records), d.count > len(d.records)
}

// Reset begins a new list of at most so many calls. It does not affect running calls.
func (d *Dispatcher) Reset(most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limits.Calls = most
	d.first += len(d.records)
	d.count, d.records = 0, nil
}
