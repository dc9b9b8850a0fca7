package runtime

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gaol/internal/snippet"
	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/stdio"
)

// cells is the host's end of a context. What its guest sends belongs to the current cell,
// of which there is one at most. Only lines may arrive at any time.
//
//	        begin                   done
//	idle ----------> current cell -------> idle
//	 log*             log*, value*, failure*
type cells struct {
	onClose func(error) // called once when the channel is closed; the error is a violation of the protocol
	onLog   func(Log)   // may be nil
	sources *snippet.Sources
	bounds  guest.LogBounds // of the lines between two cells
	ordered *ordered

	mu      sync.Mutex
	current *cell              // nil: idle
	idle    *logs              // of the time until the next cell
	lines   [lineSources]*logs // where the lines of each source go: to the logs of a cell, or to idle
}

// lineSource is where a line comes from.
type lineSource int

const (
	fromConsole lineSource = iota
	fromStdout
	fromStderr
	lineSources
)

// idleBounds limits the lines between two cells.
var idleBounds = guest.LogBounds{Logs: 100, LogLength: 1000}

// newCells returns the cells of a new context. onLog, if not nil, gets the lines that arrive
// between two cells; otherwise the next cell does.
func newCells(onLog func(Log), sources *snippet.Sources, onClose func(error)) *cells {
	c := &cells{onClose: onClose, onLog: onLog, sources: sources, bounds: idleBounds}
	c.idle = c.newIdleLogs()
	c.ordered = newOrdered(idleBounds.LogLength, func(level LogLevel, text string) { c.add(fromConsole, level, text) })
	c.lines = [lineSources]*logs{c.idle, c.idle, c.idle}
	return c
}

// add adds a line to the logs of its source.
func (c *cells) add(source lineSource, level LogLevel, text string) {
	for {
		c.mu.Lock()
		to := c.lines[source]
		c.mu.Unlock() // adding may block: a slow consumer must not stop the control channel
		if to.add(level, text) {
			return
		}
		// Those logs have just been closed, and replaced.
	}
}

func (c *cells) newIdleLogs() *logs {
	return newLogs(c.sources, EvaluateOptions{MaxLogs: c.bounds.Logs, MaxLogLength: c.bounds.LogLength, OnLog: c.onLog})
}

// sink returns a sink for one of the output streams.
func (c *cells) sink(source lineSource, level LogLevel) *stdio.Lines {
	s := stdio.NewLines(idleBounds.LogLength, func(line string) { c.add(source, level, line) })
	s.OnFlush = func() { c.detach(source) }
	return s
}

// begin makes next the current cell. It also gets the lines that arrived since the last one.
//
// Preconditions: there is no current cell.
func (c *cells) begin(next *cell) {
	if next.logs != nil {
		c.redirect(next.logs)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = next // last, because its end redirects the lines
}

// redirect sends lines to a cell's logs, including lines that have arrived since the last cell.
func (c *cells) redirect(to *logs) {
	c.mu.Lock()
	before := c.idle
	c.idle = c.newIdleLogs()
	c.mu.Unlock()
	earlier, more := before.close()
	to.mu.Lock() // newer lines wait
	defer to.mu.Unlock()
	c.mu.Lock()
	c.lines = [lineSources]*logs{to, to, to}
	c.mu.Unlock()
	if c.onLog != nil { // which has them
		return
	}
	to.more = more
	for _, l := range earlier {
		to.append(l.Level, l.Text)
	}
}

// detach makes the lines of a source belong to no cell.
func (c *cells) detach(source lineSource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[source] = c.idle
}

// busy reports whether code is being evaluated.
func (c *cells) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil && c.current.logs != nil
}

// maxFrame returns the maximum size of a frame; 0 refuses it. The guest's half truncates
// lines to the bounds of the cell or, before it has received the cell, to idleBounds.
func (c *cells) maxFrame(kind wire.Kind) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	ofCell, ofIdle := int64(0), int64(0)
	if c.current != nil {
		ofCell = c.current.maxFrame(kind)
	}
	switch {
	case kind == wire.KindOutput:
		ofIdle = maxOutput
	case kind == wire.KindLog:
		ofIdle = guest.MaxLogBytes(idleBounds.LogLength) + 1
	case kind == wire.KindDone && c.current != nil:
		return 4
	}
	return max(ofCell, ofIdle)
}

// close handles the end of the channel.
func (c *cells) close(err error) {
	c.ordered.flush(0)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	c.onClose(err)
}

// receive handles a frame that maxFrame has accepted: unless it is a line, there is a
// current cell.
func (c *cells) receive(kind wire.Kind, body []byte) error {
	switch kind {
	case wire.KindLog, wire.KindOutput:
		return c.ordered.receive(kind, body)
	case wire.KindDone:
		c.ordered.flush(idleBounds.LogLength) // belongs to the cell
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == wire.KindDone {
		return c.finish(body)
	}
	return c.current.receive(kind, body)
}

// finish ends the current cell.
//
// Preconditions: c.mu is held.
func (c *cells) finish(body []byte) error {
	number, err := wire.ParseDone(body)
	if err != nil {
		return err
	}
	if number != c.current.number {
		return fmt.Errorf("%w: cell %d has ended, but the current one is %d", wire.ErrFrame, number, c.current.number)
	}
	close(c.current.done)
	c.current = nil
	// Only the console's lines use this channel, and so precede this frame. Lines of the output
	// streams may still be in their pipes: they belong to the cell until the pipes are flushed.
	c.lines[fromConsole] = c.idle
	return nil
}

// newLogs returns empty logs that begin now.
func newLogs(sources *snippet.Sources, o EvaluateOptions) *logs {
	l := &logs{sources: sources, options: o, began: time.Now()}
	l.ordered = newOrdered(o.MaxLogLength, func(level LogLevel, text string) { l.add(level, text) })
	return l
}
