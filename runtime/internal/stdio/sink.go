package stdio

import (
	"bytes"
	"io"
	"sync/atomic"
	"unicode/utf8"
)

// Sink consumes an output stream.
type Sink interface {
	// Buffer returns memory for the next read, of at least n bytes. It may block to apply
	// backpressure.
	Buffer(n int) []byte

	// Write consumes b, which is a part of the last Buffer.
	Write(b []byte)
}

// Pump copies a stream to a sink until the stream's end. It reads larger pieces once a read
// has filled its buffer.
func Pump(from io.Reader, to Sink) {
	size := pipeSize
	for {
		buf := to.Buffer(size)
		n, err := from.Read(buf)
		if n > 0 {
			to.Write(buf[:n])
		}
		if err != nil {
			flush(to)
			return
		}
		if n == len(buf) {
			size = max(len(buf), largeRead)
		}
	}
}

// flush flushes a sink that splits its stream.
func flush(s Sink) {
	if lines, ok := s.(*Lines); ok {
		lines.Flush()
	}
}

// buffer is memory for reads, which grows. A sink that consumes each piece immediately embeds
// it.
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

// Flush ends an unfinished line. Pump calls it at the end of the stream, and a Reader when
// Reader.Flush is being served.
func (l *Lines) Flush() {
	if l.open {
		l.endLine()
	}
	if l.OnFlush != nil {
		l.OnFlush()
	}
}

// Take returns the unfinished line, and removes it.
func (l *Lines) Take() string {
	line := string(l.rest)
	l.rest, l.open = l.rest[:0], false
	return line
}

func (l *Lines) endLine() {
	l.line(l.rest)
	l.rest, l.open = l.rest[:0], false
}
