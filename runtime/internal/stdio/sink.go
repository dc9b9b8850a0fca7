package stdio

import (
	"bytes"
	"sync/atomic"
	"unicode/utf8"
)

// buffer is the memory of a sink that consumes each piece immediately.
type buffer []byte

func (b *buffer) Buffer(n int) []byte {
	if len(*b) < n {
		*b = make([]byte, n)
	}
	return *b
}

// Capture is a sink that keeps the beginning of a stream.
type Capture struct {
	Limit    int64        // bytes to keep
	OnLimit  func()       // called with each piece that exceeds the limit; may be nil
	OnOutput func([]byte) // called with each piece, whole; may be nil

	Kept      []byte
	Truncated bool

	buffer
}

// Write keeps as much of b as the limit allows.
func (c *Capture) Write(b []byte) {
	keep := b
	if room := c.Limit - int64(len(c.Kept)); int64(len(b)) > room {
		keep = b[:room]
		c.Truncated = true
		if c.OnLimit != nil {
			c.OnLimit()
		}
	}
	c.Kept = append(c.Kept, keep...)
	if c.OnOutput != nil {
		c.OnOutput(b)
	}
}

// Flush does nothing.
func (c *Capture) Flush(bool) {}

// EventSink is a sink that passes a stream on as events of a feed. It has two buffers: the
// consumer uses one while the other is filled.
type EventSink[E any] struct {
	Feed    *Feed[E]
	Event   func([]byte) E
	Limit   int64  // bytes after which OnLimit is called
	OnLimit func() // may be nil

	count   int64 // bytes so far
	buffers [eventBuffers][]byte
	turn    int // index of the last buffer returned
	used    int // buffers that are in the feed or with its consumer; guarded by the feed's lock
}

const eventBuffers = 2

// Buffer waits until the consumer has returned a buffer, unless the run has ended.
func (f *EventSink[E]) Buffer(n int) []byte {
	if !f.Feed.acquire(&f.used) {
		return make([]byte, n)
	}
	f.turn = (f.turn + 1) % eventBuffers // they return in the order in which they were sent
	b := &f.buffers[f.turn]
	if len(*b) < n {
		*b = make([]byte, n)
	}
	return *b
}

// Write puts b into the feed.
func (f *EventSink[E]) Write(b []byte) {
	f.Feed.put(item[E]{event: f.Event(b), buffers: &f.used})
	if f.count += int64(len(b)); f.count > f.Limit && f.OnLimit != nil {
		f.OnLimit()
	}
}

// Flush does nothing.
func (f *EventSink[E]) Flush(bool) {}

// Lines is a sink that splits a stream into lines. It keeps the beginning of long ones.
type Lines struct {
	line    func([]byte)
	max     atomic.Int64 // bytes of a line
	OnFlush func()       // called by Flush after an unfinished line; may be nil

	rest []byte
	open bool // there is an unfinished line, which may be empty
	buffer
}

// NewLines returns a sink that calls line with each line, without the newline. Of a line it
// keeps as many bytes as the given number of characters may have, and a little more, so
// that line can detect whether it was truncated.
func NewLines(characters int, line func([]byte)) *Lines {
	l := &Lines{line: line}
	l.SetMax(characters)
	return l
}

// SetMax changes the maximum length of the lines that follow.
func (l *Lines) SetMax(characters int) { l.max.Store(int64(utf8.UTFMax * (characters + 1))) }

// Write splits b.
func (l *Lines) Write(b []byte) {
	most := int(l.max.Load())
	for {
		line, after, ended := bytes.Cut(b, []byte("\n"))
		l.rest = append(l.rest, line[:min(len(line), max(most-len(l.rest), 0))]...)
		l.open = l.open || len(line) > 0
		if !ended {
			return
		}
		l.endLine()
		b = after
	}
}

// Flush ends an unfinished line.
func (l *Lines) Flush(bool) {
	if l.open {
		l.endLine()
	}
	if l.OnFlush != nil {
		l.OnFlush()
	}
}

func (l *Lines) endLine() {
	l.line(l.rest)
	l.rest, l.open = l.rest[:0], false
}
