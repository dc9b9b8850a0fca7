package runtime

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/stdio"
)

// control is the host's end of a run's control channel. The guest writes the frames: one
// that violates the protocol of package wire ends the channel, and what arrived before it
// stays valid.
type control struct {
	in         *stdio.Reader
	out        *hostcall.Writer     // nil if the host sends nothing
	calls      *hostcall.Dispatcher // nil without host functions
	translator *translator          // nil if the program imports no TypeScript
	main       *cell                // the program's report; nil in a context
	cells      *cells               // nil except in a context
	room       func()               // blocks while the consumer of events is behind
}

// maxFrame returns the maximum size of a frame; 0 refuses it.
func (c *control) maxFrame(kind wire.Kind) int64 {
	switch {
	case kind == wire.KindCall:
		return c.calls.MaxFrame()
	case kind == wire.KindTranslate && c.translator != nil:
		return maxTranslation
	case c.cells != nil:
		return c.cells.maxFrame(kind)
	case c.main.logs == nil && (kind == wire.KindLog || kind == wire.KindNoValue || kind == wire.KindOutput):
		return 0
	case kind == wire.KindOutput:
		return maxOutput
	case kind == wire.KindLog:
		return guest.MaxLogBytes(c.main.logs.options.MaxLogLength) + 1
	}
	return c.main.maxFrame(kind)
}

// run reads frames until the channel's end.
func (c *control) run() {
	frames := wire.NewReader(c.in, c.maxFrame)
	for {
		kind, body, err := frames.Next()
		if err == nil {
			err = c.receive(kind, body)
		}
		if err != nil {
			c.close(err)
			return
		}
	}
}

// close closes the channel. A program that continues gets EPIPE, and the end of the host's
// frames.
func (c *control) close(err error) {
	if c.cells != nil {
		c.cells.ordered.flush(0)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		c.cells.onClose(err)
	}
	if c.main != nil && c.main.logs != nil {
		c.main.logs.ordered.flush(0)
	}
	c.in.Close()
	c.out.Close()
}

func (c *control) receive(kind wire.Kind, body []byte) (err error) {
	switch {
	case kind == wire.KindCall:
		return c.receiveCall(body)
	case kind == wire.KindTranslate:
		return c.translator.answer(body)
	case c.cells != nil:
		return c.cells.receive(kind, body)
	case kind == wire.KindLog, kind == wire.KindOutput:
		return c.main.logs.ordered.receive(kind, body)
	}
	return c.main.receive(kind, body)
}

func (c *control) receiveCall(body []byte) error {
	c.room()
	call, err := wire.ParseCall(body)
	if errors.Is(err, wire.ErrDuplicateName) {
		return c.calls.Accept(call, &hostcall.Error{Code: CodeArguments, Message: "the arguments: " + err.Error()})
	}
	if err != nil {
		return err
	}
	return c.calls.Accept(call, c.refusal())
}

// refusal returns why no function may be called now. It is nil except in a context between
// two cells.
func (c *control) refusal() error {
	if c.cells == nil || c.cells.busy() {
		return nil
	}
	return &hostcall.Error{Code: CodeNoCell, Message: "host functions can be called while a cell is evaluated"}
}

// cell is a guest's report about one program: of a run or, in a context, of an evaluation or a
// request for completions.
type cell struct {
	number   uint32 // in a context
	maxValue int64  // bytes
	logs     *logs  // nil for Run and a request for completions, which have no lines
	value    json.RawMessage
	failure  *wire.Failure // the last error that was not caught
	noValue  string        // why the value cannot be encoded as JSON
	done     chan struct{} // in a context: closed when the guest reports the end
}

// Limits of frames. The guest's half truncates to less.
const (
	maxFailure = 256 << 10
	maxNoValue = 8 << 10
	maxOutput  = 8 << 10
)

// maxFrame returns the maximum size of a frame about the cell; 0 refuses it.
func (cl *cell) maxFrame(kind wire.Kind) int64 {
	switch kind {
	case wire.KindValue:
		return cl.maxValue
	case wire.KindFailure:
		return maxFailure
	case wire.KindNoValue:
		return maxNoValue
	}
	return 0
}

// receive stores the report in a frame that maxFrame has accepted. A later value or failure replaces
// the earlier one.
func (cl *cell) receive(kind wire.Kind, body []byte) error {
	switch kind {
	case wire.KindValue:
		value, err := wire.ParseValue(body)
		if err == nil {
			cl.value = value
		}
		return err
	case wire.KindFailure:
		f, err := wire.ParseFailure(body)
		if err == nil {
			cl.failure = &f
		}
		return err
	case wire.KindNoValue:
		cl.noValue = wire.ParseNoValue(body)
	}
	return nil
}

// interrupt interrupts a program with a grace period whose time is up, and waits for its end.
// guest/grace.cjs is the guest's half.
//
// SIGURG, which other programs ignore, wakes an event loop that waits. SIGINT terminates
// running code.
func (p *Process) interrupt() {
	p.interrupted = true
	_ = p.child.Signal(unix.SIGURG, false) // it may have ended
	_ = p.child.Signal(unix.SIGINT, false)
	select {
	case <-p.child.Done():
	case <-time.After(p.grace):
	case <-p.life.Done():
	}
}
