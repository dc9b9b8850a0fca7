package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gaol/internal/wire"
)

// cells are the host's end of a context. What its guest sends belongs to the cell that
// goes on: there is one at most. All that it may send at any time are lines.
//
//	        begin                    done
//	idle ----------> a cell goes on -------> idle
//	 log*              log*, value*, failure*
type cells struct {
	onEnd   func(error) // told once when no more can come
	onLog   func(Log)   // may be nil
	sources *sources
	bounds  logBounds // of lines that come between two cells

	lines [3]line // of console, of standard output, of standard error

	mu      sync.Mutex
	current *cell  // nil: none goes on
	idle    *notes // of the time until the next one
}

// line is where lines of one source go: to the notes of a cell, or to those of the time
// between two of them.
type line struct{ to atomic.Pointer[notes] }

func (l *line) add(level LogLevel, text string) {
	for !l.to.Load().add(level, text) { // those have just been closed: there are others
	}
}

const (
	fromConsole = iota
	fromStdout
	fromStderr
)

// cell is what one cell, or what asks for names, comes to.
type cell struct {
	number  uint32
	limit   int64  // bytes of its value
	notes   *notes // nil: it prints nothing
	value   json.RawMessage
	failure *wire.Failure
	noValue string        // why there is no value, if the guest says so
	done    chan struct{} // closed when the guest says so
}

// newCells are for a context that nobody has used yet. onLog, if not nil, gets the lines
// that come between two cells; otherwise the next cell does.
func newCells(onLog func(Log), from *sources, onEnd func(error)) *cells {
	c := &cells{onEnd: onEnd, onLog: onLog, sources: from, bounds: idleBounds}
	c.idle = c.newIdle()
	for i := range c.lines {
		c.lines[i].to.Store(c.idle)
	}
	return c
}

// idleBounds are those of lines that come between two cells.
var idleBounds = logBounds{defaultLogs, defaultLogLength}

// newIdle are notes for the time until the next cell.
func (c *cells) newIdle() *notes {
	o := EvaluateOptions{MaxLogs: c.bounds.Logs, MaxLogLength: c.bounds.LogLength, OnLog: c.onLog}
	return &notes{sources: c.sources, options: o, began: time.Now()}
}

// begin has what comes belong to a cell, and what has come since the last one.
//
// Preconditions: none goes on.
func (c *cells) begin(next *cell) {
	if next.notes != nil {
		c.lead(next.notes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = next // last: its end has lines go elsewhere
}

// lead has lines go to a cell's notes, first those that came since the last one.
func (c *cells) lead(to *notes) {
	c.mu.Lock()
	before := c.idle
	c.idle = c.newIdle()
	c.mu.Unlock()
	logs, more := before.close()
	to.mu.Lock() // newer ones wait
	defer to.mu.Unlock()
	for i := range c.lines {
		c.lines[i].to.Store(to)
	}
	if c.onLog != nil { // which has them
		return
	}
	to.more = more
	for _, l := range logs {
		to.note(l.Level, l.Text)
	}
}

// rest has lines of a source belong to no cell.
func (c *cells) rest(source int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[source].to.Store(c.idle)
}

// busy reports whether code is evaluated.
func (c *cells) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil && c.current.notes != nil
}

// most are the bytes that a frame may have. Its own half cuts lines by the bounds of
// the cell, or, for those that come before it has seen the cell, by ours.
func (c *cells) most(kind wire.Kind) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kind == wire.KindLog && c.current != nil && c.current.notes != nil:
		return maxLog(max(c.bounds.LogLength, c.current.notes.options.MaxLogLength)) + 1
	case kind == wire.KindLog:
		return maxLog(c.bounds.LogLength) + 1
	case c.current == nil:
		return 0
	case kind == wire.KindValue:
		return c.current.limit
	case kind == wire.KindFailure:
		return maxFailure
	case kind == wire.KindNoValue:
		return maxNoValue
	case kind == wire.KindDone:
		return 4
	}
	return 0
}

// take takes a frame that most has let through: there is a cell, but for a line.
func (c *cells) take(kind wire.Kind, body []byte) error {
	if kind == wire.KindLog {
		level, text, err := wire.ParseLog(body)
		if err == nil {
			c.lines[fromConsole].add(logLevels[level], text)
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case wire.KindValue:
		value, err := wire.ParseValue(body)
		if err == nil {
			c.current.value = value
		}
		return err
	case wire.KindFailure:
		f, err := wire.ParseFailure(body)
		if err == nil {
			c.current.failure = &f
		}
		return err
	case wire.KindNoValue:
		c.current.noValue = wire.ParseNoValue(body)
		return nil
	default:
		return c.finish(body)
	}
}

// finish takes the end of the cell.
//
// Preconditions: c.mu is held.
func (c *cells) finish(body []byte) error {
	number, err := wire.ParseDone(body)
	if err != nil {
		return err
	}
	if number != c.current.number {
		return fmt.Errorf("%w: cell %d has ended, and %d is what goes on", wire.ErrFrame, number, c.current.number)
	}
	close(c.current.done)
	c.current = nil
	c.lines[fromConsole].to.Store(c.idle)
	return nil
}

// end takes that nothing more can come. The error says why, if that is more than the end
// of the process.
func (c *cells) end(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	c.onEnd(err)
}
