package runtime

import (
	"encoding/json"
	"errors"
	"io"

	"gaol/internal/wire"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/stdio"
)

// control is the host's end of a run's control channel. The guest writes the frames: one
// that violates the protocol of package wire ends the channel, and what arrived before it
// stays valid.
type control struct {
	in       *stdio.Reader
	out      *hostcall.Writer // nil if the host sends nothing
	calls    *hostcall.Calls  // nil if the program has no functions
	cells    *cells           // nil except in a context
	maxValue int64            // bytes
	maxLog   int64            // bytes of a line; 0: lines are not expected
	onLog    func(wire.Level, string)

	value  json.RawMessage // the last one
	report guestReport

	frames *wire.Reader
	done   chan struct{} // closed at the channel's end
}

// guestReport is what a guest reports about the end of its program, in addition to the value.
type guestReport struct {
	failure *wire.Failure // the last error that was not caught
	noValue string        // why the value has no JSON
}

// Limits of frames. The guest's half truncates to less.
const (
	maxFailure = 256 << 10
	maxNoValue = 8 << 10
)

// maxFrame returns the maximum size of a frame; 0 refuses it.
func (c *control) maxFrame(kind wire.Kind) int64 {
	switch {
	case kind.IsCall() && c.calls != nil:
		return c.calls.MaxFrame()
	case kind.IsCall():
		return 0
	case c.cells != nil:
		return c.cells.maxFrame(kind)
	case kind == wire.KindValue:
		return c.maxValue
	case kind == wire.KindLog && c.onLog != nil:
		return c.maxLog + 1
	case kind == wire.KindFailure:
		return maxFailure
	case kind == wire.KindNoValue && c.onLog != nil:
		return maxNoValue
	}
	return 0
}

// run reads frames until the end of the run.
func (c *control) run() {
	c.frames, c.done = wire.NewReader(c.in, c.maxFrame), make(chan struct{})
	if c.calls != nil {
		c.calls.ReadWith(c.read)
		go c.read() // because a host function may end the goroutine
	} else {
		c.read()
	}
	<-c.done
}

// read reads frames until the channel's end, or until another goroutine reads instead.
func (c *control) read() {
	for {
		kind, body, err := c.frames.Next()
		if err == nil {
			err = c.receive(kind, body)
		}
		switch {
		case errors.Is(err, hostcall.ErrHandedOver):
			return
		case err != nil:
			c.close(err)
			return
		}
	}
}

// close closes the channel. A program that continues gets EPIPE, and the end of the host's
// frames.
func (c *control) close(err error) {
	if c.cells != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		c.cells.onClose(err)
	}
	c.in.Close()
	c.out.Close()
	close(c.done)
}

func (c *control) receive(kind wire.Kind, body []byte) (err error) {
	switch {
	case kind.IsCall():
		return c.receiveCall(kind, body)
	case c.cells != nil:
		return c.cells.receive(kind, body)
	case kind == wire.KindLog:
		level, text, err := wire.ParseLog(body)
		if err == nil {
			c.onLog(level, text)
		}
		return err
	case kind == wire.KindValue:
		var value json.RawMessage
		if value, err = wire.ParseValue(body); err == nil {
			c.value = value
		}
		return err
	}
	return c.report.receive(kind, body)
}

// receive stores a failure, or the reason for a missing value.
func (r *guestReport) receive(kind wire.Kind, body []byte) error {
	switch kind {
	case wire.KindFailure:
		f, err := wire.ParseFailure(body)
		if err == nil {
			r.failure = &f
		}
		return err
	case wire.KindNoValue:
		r.noValue = wire.ParseNoValue(body)
	}
	return nil
}

func (c *control) receiveCall(kind wire.Kind, body []byte) error {
	blocking := kind == wire.KindAsk
	call, err := wire.ParseCall(body)
	if errors.Is(err, wire.ErrDuplicateName) {
		return c.calls.Accept(call, false, &hostcall.Error{Code: CodeArguments, Message: "the arguments: " + err.Error()})
	}
	if err != nil {
		return err
	}
	if err = c.calls.Accept(call, blocking, c.refusal()); err == nil && blocking {
		c.in.Expect()
	}
	return err
}

// refusal returns why no function may be called now. It is nil except in a context between
// two cells.
func (c *control) refusal() error {
	if c.cells == nil || c.cells.busy() {
		return nil
	}
	return &hostcall.Error{Code: CodeNoCell, Message: "host functions can be called while a cell is evaluated"}
}
