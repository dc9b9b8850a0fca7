package hostcall

import (
	"context"
	"errors"
)

// ErrStopped is the error of calls that the end of their run has cut off.
var ErrStopped = errors.New(Unanswered)

// otherCall is a call that did not arrive on the control channel.
type otherCall struct {
	call     func(context.Context) (size int, err error)
	answered chan error // has room for the only one
}

func (c *otherCall) answer(err error) { c.answered <- err }

// Do performs a call that arrived in another way, with the run's limits, and returns when it
// is answered or the run has ended. name and size describe it and its arguments; call returns
// the size of the result. An error of the limits is an *Error. After an error, call may still
// run.
func (d *Dispatcher) Do(name string, size int, call func(context.Context) (size int, err error)) error {
	d.waitForObserver()
	c := &otherCall{call, make(chan error, 1)}
	if err := d.admitOther(d.begin(&pendingCall{name: name, size: size, other: c})); err != nil {
		return err
	}
	select {
	case err := <-c.answered:
		return err
	case <-d.ctx.Done():
		return ErrStopped
	}
}

func (d *Dispatcher) admitOther(p *pendingCall) error {
	d.mu.Lock()
	d.others++
	p.key = 1<<32 + d.others // no number of a call on the control channel
	d.mu.Unlock()
	var refused error
	if int64(p.size) > d.limits.Arguments {
		refused = &Error{Message: "the arguments are too large", Code: CodeArguments}
	}
	_, err := d.admit(p, false, refused)
	return err
}
