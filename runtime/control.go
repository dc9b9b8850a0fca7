package runtime

import (
	"encoding/json"
	"errors"

	"gaol/internal/wire"
)

// control is the host's end of a run's control channel. What comes is the guest's: a
// frame that does not keep to package wire ends the channel, and what came before stays.
type control struct {
	from  *pipeReader
	out   *outbox // nil without calls
	limit int64   // bytes of a value
	calls *calls  // nil: the program has no functions
	told  *told   // nil but with Evaluate
	cells *cells  // nil but for a context

	last    json.RawMessage
	failure *wire.Failure // the last; not a context's

	frames *wire.Reader
	over   chan struct{} // closed at the channel's end
}

// told is what comes of an evaluation besides its value.
type told struct {
	failure *wire.Failure // the last
	noValue string        // why there is no value, if the guest says so
	onLog   func(wire.Level, string)
	maxLog  int64 // bytes of one text
}

// maxFailure bounds what a guest tells of its error; its own half cuts it.
const maxFailure = 256 << 10

// maxNoValue bounds what a guest says of a value that has no JSON.
const maxNoValue = 8 << 10

// most are the bytes that a frame of the guest may have.
func (c *control) most(kind wire.Kind) int64 {
	switch {
	case c.cells != nil && !kind.IsCall():
		return c.cells.most(kind)
	case kind == wire.KindValue:
		return c.limit
	case kind.IsCall() && c.calls != nil:
		return c.calls.limits.Arguments + 8
	case kind == wire.KindLog && c.told != nil:
		return c.told.maxLog + 1
	case kind == wire.KindFailure:
		return maxFailure
	case kind == wire.KindNoValue && c.told != nil:
		return maxNoValue
	}
	return 0
}

// pump takes in what the guest sends, to the end of the run.
func (c *control) pump() {
	c.frames, c.over = wire.NewReader(c.from, c.most), make(chan struct{})
	if c.calls != nil {
		c.calls.read = c.read
		go c.read() // where a function may end the goroutine
	} else {
		c.read()
	}
	<-c.over
}

// read takes in frames, to the channel's end or until another goroutine does so in its
// place: see calls.ask.
func (c *control) read() {
	for {
		kind, body, err := c.frames.Next()
		if err == nil {
			err = c.take(kind, body)
		}
		switch {
		case errors.Is(err, errRelieved):
			return
		case err != nil:
			c.end(err)
			return
		}
	}
}

// end is the channel's. A program that goes on gets EPIPE, and the end of its answers. It
// costs the host nothing.
func (c *control) end(err error) {
	if c.cells != nil {
		c.cells.end(err)
	}
	c.from.file.Close()
	if c.out != nil {
		c.out.close()
	}
	close(c.over)
}

func (c *control) take(kind wire.Kind, body []byte) (err error) {
	if c.cells != nil && !kind.IsCall() {
		return c.cells.take(kind, body)
	}
	switch kind {
	case wire.KindValue:
		var value json.RawMessage
		if value, err = wire.ParseValue(body); err == nil {
			c.last = value
		}
	case wire.KindCall, wire.KindAsk:
		var call wire.Call
		if call, err = wire.ParseCall(body); err == nil {
			if err = c.calls.take(call, kind == wire.KindAsk, c.refusal()); err == nil && kind == wire.KindAsk {
				c.from.expect()
			}
		} else if errors.Is(err, wire.ErrTwice) {
			err = c.calls.take(call, false, &CallError{CodeArguments, "the arguments: " + err.Error()})
		}
	case wire.KindLog:
		var level wire.Level
		var text string
		if level, text, err = wire.ParseLog(body); err == nil {
			c.told.onLog(level, text)
		}
	case wire.KindFailure:
		var f wire.Failure
		if f, err = wire.ParseFailure(body); err == nil {
			c.failure = &f
		}
	case wire.KindNoValue:
		c.told.noValue = wire.ParseNoValue(body)
	}
	return err
}

// refusal is why no function may be called now. It is nil for all runs but contexts.
func (c *control) refusal() error {
	if c.cells == nil || c.cells.busy() {
		return nil
	}
	return &CallError{CodeNoCell, "host functions can be called while a cell is evaluated"}
}

// endCalls lets no function of the host's be called any more, and what goes on know it.
func (c *control) endCalls() {
	if c.calls != nil {
		c.calls.end()
	}
}

func (c *control) result(res *Result) {
	res.Value, res.told = c.last, c.told
	if res.told != nil {
		res.told.failure = c.failure
	} else if c.failure != nil {
		res.Error = newGuestError(c.failure, asItIs{})
	}
	if c.calls != nil {
		res.Calls, res.Truncated.Calls = c.calls.listed()
	}
}

// evaluateHead is what the guest's half of an evaluation has to know.
type evaluateHead struct {
	logBounds
	Form     string `json:"form,omitempty"`     // of formNames
	Explicit bool   `json:"explicit,omitempty"` // the code says what its value is
}

// contextHead describes a context to the guest's half; guest/program.cjs draws it.
type contextHead struct {
	logBounds
	Last bool `json:"last,omitempty"`
}

// logBounds are those of lines that the guest's half keeps to.
type logBounds struct {
	Logs      int `json:"logs"`      // the most lines
	LogLength int `json:"logLength"` // the most characters of one
}
