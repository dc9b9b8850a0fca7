package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// work performs calls, one at a time, until the run has ended. The next one's turn comes
// when the answer of the last is with the guest, or nearly, which bounds what answers
// there are in memory. A function that is late is not waited for, but keeps its turn.
func (c *calls) work() {
	for {
		p := c.next()
		if p == nil {
			return
		}
		c.perform(p, c.work)
	}
}

var errFailed = &CallError{CodePanic, "the host function failed"}

// perform calls a function and answers. If that ends the goroutine, as testing.T's Fatal
// does, another one goes on with what is next.
func (c *calls) perform(p *pendingCall, next func()) {
	returned := false
	defer func() {
		p.ctx.end()
		if !returned {
			c.conclude(p, nil, errFailed)
			go next()
		}
	}()
	text, err := c.functions[p.Function].answer(&p.ctx, p.Args, c.limits.Result)
	returned = true
	if time.Since(p.began) >= c.limits.Timeout { // whether it says so or not, and expire was first or not
		text, err = nil, c.late
	}
	c.conclude(p, text, err)
}

// next waits for a call. It is nil once the run has ended.
func (c *calls) next() *pendingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.queue) == 0 || c.busy() > c.limits.Concurrent) && !c.ended {
		c.idle++
		c.more.Wait()
		c.idle--
	}
	if c.ended || c.ctx.Err() != nil { // it is over, and end will come
		return nil
	}
	p := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.running++
	c.newest = time.Now()
	return p
}

// conclude answers the call of a function that has returned.
func (c *calls) conclude(p *pendingCall, text json.RawMessage, err error) {
	c.mu.Lock()
	mine := c.settle(p, len(text), err)
	if c.running--; c.ended {
		c.quiet.Broadcast()
	}
	c.mu.Unlock()
	switch {
	case !mine:
	case err != nil:
		c.out.answer(p.ID, true, errorText(err))
	default:
		c.out.answer(p.ID, false, text)
	}
}

// resultError is a result that JSON can't say. Why is Go's affair, and so the host's.
type resultError struct{ why error }

func (e *resultError) Error() string { return "the result: " + e.why.Error() }

// answer calls the function, whatever it does. An error is a *CallError or a *resultError.
func (f *hostFunction) answer(ctx context.Context, args json.RawMessage, most int64) (text json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil { // a function's own fault must not end the host
			text, err = nil, errFailed
		}
	}()
	v, err := f.call(ctx, args)
	if err != nil {
		return nil, toldError(err)
	}
	if text, err = toGuest(v); err != nil {
		return nil, &resultError{err}
	}
	if int64(len(text)) > most {
		return nil, &CallError{CodeResult, fmt.Sprintf("the result has %d bytes of JSON, the limit is %d", len(text), most)}
	}
	return text, nil
}

// maxErrorText bounds what a guest is told of an error.
const maxErrorText = 64 << 10

// toldError is what a guest is told of an error.
func toldError(err error) *CallError {
	if _, ok := errors.AsType[*resultError](err); ok {
		return &CallError{CodeResult, "the host function's result is nothing that JSON can say"}
	}
	told := &CallError{Message: err.Error()}
	if coded, ok := errors.AsType[*CallError](err); ok {
		told.Code = coded.Code
	}
	if len(told.Message) > maxErrorText {
		told.Message = told.Message[:maxErrorText]
	}
	return told
}

func errorText(err error) []byte {
	e := toldError(err)
	text, failed := json.Marshal(struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	}{e.Message, e.Code})
	if failed != nil {
		panic(failed) // two strings
	}
	return text
}
