package hostcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// work performs calls, one at a time, until none waits. It takes the next one when the last answer
// has been written, which bounds the answers in memory.
func (d *Dispatcher) work() {
	for p := d.next(); p != nil; p = d.next() {
		d.perform(p)
	}
}

// perform calls a function and answers. If the function ends the goroutine, as testing.T's
// Fatal does, another goroutine continues.
func (d *Dispatcher) perform(p *pendingCall) {
	returned := false
	defer func() {
		p.ctx.end()
		if !returned {
			d.answer(p, nil, 0, errPanic)
			go d.work()
		}
	}()
	text, size, err := p.perform(&p.ctx)
	returned = true
	if time.Since(p.began) >= d.limits.Timeout { // whatever it returned, and whether or not expire came first
		err = d.late
	}
	if err != nil {
		text, size, err = nil, 0, NewError(err)
	}
	d.answer(p, text, size, err)
}

// next takes a call from the queue. It returns nil if there is none, or the run has ended: then the
// worker must return.
func (d *Dispatcher) next() *pendingCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 || d.stopped != nil || d.ctx.Err() != nil { // Stop has been or will be called
		d.workers--
		return nil
	}
	p := d.queue[0]
	d.queue[0] = nil // the array may live longer than the call's arguments
	d.queue = d.queue[1:]
	d.running++
	d.newest = time.Now()
	return p
}

// answer records the end of a call whose function has returned, and writes the answer.
func (d *Dispatcher) answer(p *pendingCall, text json.RawMessage, size int, err error) {
	d.mu.Lock()
	first := d.finish(p, size, err) // false: expire has answered it, or the run has ended
	d.running--
	d.closeIfQuiet()
	d.mu.Unlock()
	switch {
	case !first:
	case p.other != nil:
		p.other <- err
	case err != nil:
		d.out.Answer(uint32(p.key), true, ErrorText(err))
	default:
		d.out.Answer(uint32(p.key), false, text)
	}
}

// catch turns a panic into an error: a function's bug must not end the host.
func catch(err *error) {
	if recover() != nil {
		*err = errPanic
	}
}

// Invoke calls a host function, and encodes its result in at most some bytes.
func Invoke(ctx context.Context, f Func, args json.RawMessage, as Integers, most int64) (text json.RawMessage, err error) {
	defer catch(&err)
	v, err := f(ctx, args)
	if err != nil {
		return nil, err
	}
	text, err = Encode("the result", v, as)
	if _, inexact := errors.AsType[*Error](err); inexact {
		return nil, err
	}
	if err != nil {
		return nil, &Error{Message: "the host function's result cannot be encoded as JSON", Code: CodeResult, reason: err.Error()}
	}
	if int64(len(text)) > most {
		return nil, &Error{Message: fmt.Sprintf("the result has %d bytes of JSON, the limit is %d", len(text), most), Code: CodeResult}
	}
	return text, nil
}

// Codes of errors that guests see for calls that reach no function, or whose result cannot
// be sent.
const (
	CodeManyCalls = "ERR_TOO_MANY_CALLS"
	CodeArguments = "ERR_ARGUMENTS"
	CodeTimeout   = "ERR_CALL_TIMEOUT"
	CodeResult    = "ERR_RESULT"
	CodePanic     = "ERR_HOST_PANIC"
	CodeNoCell    = "ERR_NO_CELL"
)

// Error is an error that a guest sees, with a code.
type Error struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	reason  string // instead of Message, for the host only
}

// Error returns the text for the host.
func (e *Error) Error() string { return cmp.Or(e.reason, e.Message) }

var errPanic = &Error{Message: "the host function failed", Code: CodePanic}

// maxErrorText bounds the text of an error that a guest gets.
const maxErrorText = 64 << 10

// NewError converts an error of a function to its form in the guest.
func NewError(err error) *Error {
	e := &Error{Message: err.Error()}
	if own, ok := errors.AsType[*Error](err); ok {
		if e.Code = own.Code; own.reason != "" {
			e.Message, e.reason = own.Message, own.reason
		}
	}
	if len(e.Message) > maxErrorText {
		e.Message = e.Message[:maxErrorText]
	}
	return e
}

// ErrorText returns an error of a function as JSON, in its form in the guest.
func ErrorText(err error) []byte {
	text, failed := json.Marshal(NewError(err))
	if failed != nil {
		panic(failed) // two strings
	}
	return text
}

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
