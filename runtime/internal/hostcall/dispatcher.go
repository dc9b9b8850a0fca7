package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"gaol/internal/strictjson"
	"gaol/internal/wire"
)

// Call describes a call of a host function.
type Call struct {
	Name      string        `json:"name"`           // such as "api.get"
	Duration  time.Duration `json:"ms"`             // wall-clock time on the host, including its time in the queue
	Arguments int           `json:"argumentsBytes"` // bytes of their JSON
	Result    int           `json:"resultBytes"`    // bytes of its JSON; 0 for a call that failed
	Error     string        `json:"error"`          // the error that the guest got, or why the result cannot be encoded as JSON; empty on success
}

type plainCall Call // without methods

// MarshalJSON implements [json.Marshaler].
func (c Call) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(plainCall(c)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Call) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainCall)(c))
}

// Limits bound the calls of a run. All fields are set. Package runtime applies their bounds and defaults, in tags.
type Limits struct {
	Calls      int           `bounds:"0..,100000"`    // calls of the run, answered or not
	Concurrent int           `bounds:"0..1024,16"`    // functions that run concurrently, at most MaxPending
	Arguments  int64         `bounds:"0B..1GiB,1MiB"` // bytes of the JSON of one call's arguments
	Result     int64         `bounds:"0B..1GiB,4MiB"` // bytes of the JSON of one result
	Timeout    time.Duration `bounds:"0..,30s"`       // of one call, including its time in the queue
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

	// Unanswered is Call.Error of a call that has not returned.
	Unanswered = "the run ended first"

	// grace is how long Stop waits for functions that were called just before: Go may need
	// that long to schedule the first line of one.
	grace = 200 * time.Millisecond
)

// ErrStopped is the error of calls that the end of their run has cut off.
var ErrStopped = errors.New(Unanswered)

// Dispatcher performs the calls of one run. It is safe for concurrent use.
type Dispatcher struct {
	ctx       context.Context // the run's
	cancel    context.CancelFunc
	functions []Function
	limits    Limits
	out       *Writer
	late      error // the error of calls that take too long

	mu      sync.Mutex
	queue   []*pendingCall
	workers int // goroutines that perform a call or write its answer
	running int // functions that have been called and have not returned
	newest  time.Time
	stopped chan struct{} // nil before Stop; closed when no function runs any more

	pending map[uint64]*pendingCall // calls without an answer, by key
	alarm   *time.Timer             // of expire; nil: it is not set
	others  uint64                  // calls of Do
	bytes   int                     // of their arguments
	count   int
	first   int // index of the first record: each cell of a context begins a new list
	records []Call
	observe func(Call) // may be nil
}

// pendingCall is a call from its admission to its answer.
type pendingCall struct {
	key   uint64 // number on the control channel, or a larger one for a call of Do
	name  string // of the function
	size  int    // of the arguments
	began time.Time

	// perform calls the function. It returns the JSON of a call on the control channel, and the
	// size of the result.
	perform func(context.Context) (text json.RawMessage, size int, err error)
	other   chan error // receives the answer to a call of Do; nil: it goes to the control channel

	ctx      callContext
	index    int // of its record; -1: it has none
	answered bool
}

// New returns the dispatcher of a run whose context is ctx.
func New(ctx context.Context, functions []Function, l Limits, out *Writer) *Dispatcher {
	d := &Dispatcher{functions: functions, limits: l, out: out, pending: map[uint64]*pendingCall{}}
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.late = &Error{Message: fmt.Sprintf("the host function took longer than %v", l.Timeout), Code: CodeTimeout}
	return d
}

// MaxFrame returns the maximum size of a call's frame; 0 refuses it. It may be called on nil.
func (d *Dispatcher) MaxFrame() int64 {
	if d == nil {
		return 0
	}
	return d.limits.Arguments + 8
}

// Observe calls f with each call that has been answered or cut off, including earlier calls with
// records. f is called with the lock held, so that each call is reported once and in order; f must
// not block.
func (d *Dispatcher) Observe(f func(Call)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.records {
		if d.stopped != nil || r.Error != Unanswered {
			f(r)
		}
	}
	d.observe = f
}

// Accept starts a call. If refused is not nil, the call is answered with that error. The caller calls work, unless it is nil, in
// any goroutine: it performs the call, and others. The error is a violation of the protocol.
func (d *Dispatcher) Accept(call wire.Call, refused error) (work func(), err error) {
	if int64(call.Function) >= int64(len(d.functions)) {
		return nil, fmt.Errorf("%w: a call of function %d", wire.ErrFrame, call.Function)
	}
	f := &d.functions[call.Function]
	p := &pendingCall{key: uint64(call.ID), name: f.Name(), size: len(call.Args)}
	p.perform = func(ctx context.Context) (text json.RawMessage, size int, err error) {
		text, err = Invoke(ctx, f.Call, call.Args, f.integers, d.limits.Result)
		return text, len(text), err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.admit(p, refused)
}

// Do performs a call that arrived in another way, with the run's limits, and returns when it
// is answered or the run has ended. name and size describe it and its arguments; call returns
// the size of the result. An error of the limits is an *Error. After an error, call may still
// run.
func (d *Dispatcher) Do(name string, size int, call func(context.Context) (size int, err error)) error {
	p := &pendingCall{name: name, size: size, other: make(chan error, 1)}
	p.perform = func(ctx context.Context) (text json.RawMessage, size int, err error) {
		defer catch(&err)
		size, err = call(ctx)
		return nil, size, err
	}
	var refused error
	if int64(size) > d.limits.Arguments {
		refused = &Error{Message: "the arguments are too large", Code: CodeArguments}
	}
	d.mu.Lock()
	d.others++
	p.key = 1<<32 + d.others // no number of a call on the control channel
	work, err := d.admit(p, refused)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if work != nil {
		go work()
	}
	select {
	case err := <-p.other:
		return err
	case <-d.ctx.Done():
		return ErrStopped
	}
}

// admit queues a call, unless it exceeds a limit.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) admit(p *pendingCall, refused error) (work func(), err error) {
	switch {
	case d.stopped != nil || d.ctx.Err() != nil: // Stop has been or will be called
		return nil, nil
	case d.pending[p.key] != nil:
		return nil, fmt.Errorf("%w: call %d twice", wire.ErrFrame, p.key)
	case d.count >= d.limits.Calls:
		refused = &Error{Message: fmt.Sprintf("more than %d calls of host functions", d.limits.Calls), Code: CodeManyCalls}
	case len(d.pending) >= MaxPending || int64(d.bytes+p.size) > maxPendingBytes+2*d.limits.Arguments:
		refused = &Error{Message: "too many concurrent calls of host functions", Code: CodeManyCalls}
	}
	d.add(p) // also a refused one, so that a guest can't send them without end
	if refused != nil {
		return nil, d.refuse(p, refused)
	}
	if d.alarm == nil {
		d.alarm = time.AfterFunc(d.limits.Timeout, d.expire)
	}
	d.queue = append(d.queue, p)
	if d.workers < d.limits.Concurrent {
		d.workers++
		work = d.work
	}
	return work, nil
}

// add counts a call and adds it to the pending ones.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) add(p *pendingCall) {
	p.began, p.index = time.Now(), -1
	p.ctx.run, p.ctx.deadline, p.ctx.late = d.ctx, p.began.Add(d.limits.Timeout), d.late
	d.count++
	d.pending[p.key] = p
	d.bytes += p.size
	if len(d.records) < maxRecords {
		p.index = d.first + len(d.records)
		d.records = append(d.records, unanswered(p))
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
		p.other <- err
	} else if !d.out.TryAnswer(uint32(p.key), true, ErrorText(err)) {
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
	if p.answered || d.stopped != nil || d.ctx.Err() != nil {
		return false
	}
	p.answered = true
	delete(d.pending, p.key)
	d.bytes -= p.size
	r := Call{Name: p.name, Duration: time.Since(p.began), Arguments: p.size, Result: size}
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

// expire answers late calls, and sets the alarm for the next one: one timer serves all calls, because few are
// late. A function that still runs occupies its worker until it returns.
func (d *Dispatcher) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.limits.Timeout
	for _, p := range d.pending {
		if left := time.Until(p.ctx.deadline); left > 0 {
			next = min(next, left)
		} else if d.refuse(p, d.late) != nil {
			d.out.Close()
		}
	}
	d.queue = slices.DeleteFunc(d.queue, func(p *pendingCall) bool { return p.answered })
	if d.alarm = nil; len(d.pending) > 0 {
		d.alarm = time.AfterFunc(next, d.expire)
	}
}

// unanswered returns the record of a call that the end of the run cut off.
func unanswered(p *pendingCall) Call {
	return Call{Name: p.name, Arguments: p.size, Error: Unanswered}
}

// Stop prevents further calls. It does not wait for running functions, unless they were
// called just before. It is idempotent, and may be called on nil.
func (d *Dispatcher) Stop() {
	if d == nil {
		return
	}
	stopped, left := d.stop()
	select {
	case <-stopped:
	case <-time.After(left):
	}
}

// stop prevents further calls. It returns a channel that is closed when no function runs, and how
// long to wait for that.
func (d *Dispatcher) stop() (stopped <-chan struct{}, left time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(d.pending)) { // none the second time
		if d.observe != nil {
			d.observe(unanswered(d.pending[id]))
		}
	}
	d.queue, d.pending = nil, nil // a stopped timer may keep d alive for long
	if d.alarm != nil {
		d.alarm.Stop()
	}
	d.cancel()
	if d.stopped == nil {
		d.stopped = make(chan struct{})
		d.closeIfQuiet()
	}
	return d.stopped, grace - time.Since(d.newest)
}

// closeIfQuiet closes d.stopped if no function runs. None is called after stop.
//
// Preconditions: d.mu is held.
func (d *Dispatcher) closeIfQuiet() {
	if d.stopped != nil && d.running == 0 {
		close(d.stopped)
	}
}

// Records returns the calls in the order in which they arrived. truncated reports whether
// some are missing.
func (d *Dispatcher) Records() (list []Call, truncated bool) {
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

// Writer writes frames to a guest.
type Writer struct {
	to     io.WriteCloser
	turn   chan struct{} // holds an element during a write; unlike a mutex it is first come, first served
	unsent chan struct{} // a semaphore: the frames of callers that do not wait
}

// NewWriter returns a writer to a pipe.
func NewWriter(to io.WriteCloser) *Writer {
	return &Writer{to: to, turn: make(chan struct{}, 1), unsent: make(chan struct{}, MaxPending)}
}

// Answer writes the answer to a call, as Send does.
func (w *Writer) Answer(call uint32, failed bool, text []byte) {
	w.Send(wire.AppendAnswer(make([]byte, 0, len(text)+wire.AnswerSize), call, failed, text))
}

// Send writes a frame. It returns when the kernel has it, or the pipe is closed.
func (w *Writer) Send(frame []byte) {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if _, err := w.to.Write(frame); err != nil {
		w.to.Close() // the frame may be incomplete: no other can follow it
	}
}

// TryAnswer is Answer for a caller that must not wait for the guest. It returns false if
// too many answers wait: their guest does not read.
func (w *Writer) TryAnswer(call uint32, failed bool, text []byte) bool {
	select {
	case w.unsent <- struct{}{}:
	default:
		return false
	}
	go func() {
		w.Answer(call, failed, text)
		<-w.unsent
	}()
	return true
}

// Close closes the pipe; a write that blocks fails. It may be called on nil.
func (w *Writer) Close() {
	if w != nil {
		w.to.Close()
	}
}
