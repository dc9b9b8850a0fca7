package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// work performs calls, one at a time, until the run has ended. It takes the next one when
// the last answer has been written, which bounds the answers in memory. A late function is
// answered without waiting for it, but occupies its worker until it returns.
func (c *Calls) work() {
	for {
		p := c.next()
		if p == nil {
			return
		}
		c.perform(p, c.work)
	}
}

// perform calls a function and answers. If the function ends the goroutine, as testing.T's
// Fatal does, another goroutine continues with next.
func (c *Calls) perform(p *pendingCall, next func()) {
	returned := false
	defer func() {
		p.ctx.stop()
		if !returned {
			c.answer(p, nil, errPanic)
			go next()
		}
	}()
	text, err := c.invoke(p)
	returned = true
	if time.Since(p.began) >= c.limits.Timeout { // whatever it returned, and whether or not expire came first
		text, err = nil, c.late
	}
	c.answer(p, text, err)
}

// next waits for a call. It returns nil once the run has ended.
func (c *Calls) next() *pendingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.queue) == 0 || c.busy() > c.limits.Concurrent) && !c.stopped {
		c.idle++
		c.more.Wait()
		c.idle--
	}
	if c.stopped || c.ctx.Err() != nil { // Stop has been or will be called
		return nil
	}
	p := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.running++
	c.newest = time.Now()
	return p
}

// answer records the end of a call whose function has returned, and writes the answer.
func (c *Calls) answer(p *pendingCall, text json.RawMessage, err error) {
	c.mu.Lock()
	first := c.finish(p, len(text), err)
	if c.running--; c.stopped {
		c.quiet.Broadcast()
	}
	c.mu.Unlock()
	switch {
	case !first:
	case err != nil:
		c.out.Answer(p.ID, true, c.errorText(err))
	default:
		c.out.Answer(p.ID, false, text)
	}
}

// resultError says that a result has no JSON. The reason is Go's, and only for the host.
type resultError struct{ err error }

func (e *resultError) Error() string { return "the result: " + e.err.Error() }

// invoke calls the function and encodes its result.
func (c *Calls) invoke(p *pendingCall) (text json.RawMessage, err error) {
	defer func() {
		if recover() != nil { // a function's bug must not end the host
			text, err = nil, errPanic
		}
	}()
	v, err := c.functions[p.Function].Call(context.Context(&p.ctx), p.Args)
	if err != nil {
		return nil, c.guestError(err)
	}
	if text, err = Encode(v); err != nil {
		return nil, &resultError{err}
	}
	if int64(len(text)) > c.limits.Result {
		return nil, &Error{CodeResult, fmt.Sprintf("the result has %d bytes of JSON, the limit is %d", len(text), c.limits.Result)}
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
type Error struct{ Code, Message string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

var errPanic = &Error{CodePanic, "the host function failed"}

// maxErrorText bounds the text of an error that a guest gets.
const maxErrorText = 64 << 10

// guestError returns what a guest sees of an error.
func (c *Calls) guestError(err error) *Error {
	if _, ok := errors.AsType[*resultError](err); ok {
		return &Error{CodeResult, "the host function's result is nothing that JSON can say"}
	}
	e := &Error{c.codeOf(err), err.Error()}
	if own, ok := errors.AsType[*Error](err); ok {
		e.Code = own.Code
	}
	if len(e.Message) > maxErrorText {
		e.Message = e.Message[:maxErrorText]
	}
	return e
}

func (c *Calls) errorText(err error) []byte {
	e := c.guestError(err)
	text, failed := json.Marshal(struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	}{e.Message, e.Code})
	if failed != nil {
		panic(failed) // two strings
	}
	return text
}
