package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/runtime/internal/sandbox"
)

// drainWait is how long a Read waits for bytes that the pipe held when its run ended. It
// expires only if another process has read them first.
const drainWait = 20 * time.Millisecond

// agentWait is how long an agent may take to send the rest of a terminal's output.
const agentWait = 10 * time.Second

// A program that writes without pause waits less for its reader with a larger pipe and a
// larger buffer: 1 GiB then takes 0.35 s instead of 0.53 s (medians of 20). The kernel
// charges the contents of a pipe to its writer.
const (
	pipeSize   = 64 << 10 // the kernel's initial size
	largePipe  = 1 << 20
	largeRead  = 256 << 10
	tailLength = 4 << 10 // enough for what V8 prints before it aborts
)

// expired is a deadline in the past.
var expired = time.Unix(1, 0)

// Reader reads a pipe or a terminal to its end. After End it reads the rest of the run's output
// and then returns io.EOF, even if another run of the same runtime holds the other end
// open.
//
//	reading ── Flush ──> flushing ── all read: onFlush ──> reading
//	   └────── End ────> draining ── all read ──> io.EOF
type Reader struct {
	file     sandbox.Stream
	conn     syscall.RawConn // the file's; nil: an agent has the file, and ends its output
	terminal bool            // the file is the host's end of a terminal
	large    bool            // the pipe was enlarged

	// The reading goroutine's.
	left     int       // bytes to read while flushing or draining; -1 while reading
	flushing bool      // what left is for
	until    time.Time // when draining ends without conn
	tail     []byte    // the last bytes read, if keepTail

	expecting bool // poll before the next read
	pause     int  // calls of Expect without effect

	keepTail bool
	onFlush  func() // flushes the sink

	mu      sync.Mutex
	ended   bool
	flushed chan struct{} // closed when the pending Flush is done; nil: none is pending
	closed  chan struct{} // closed when the pump has returned
}

// NewReader returns a reader of a pipe.
func NewReader(f sandbox.Stream) *Reader {
	conn, _ := f.SyscallConn() // fails for nil, and for terminals of agents
	return &Reader{file: f, conn: conn, left: -1, closed: make(chan struct{})}
}

// NewTerminalReader returns a reader of the host's end of a terminal.
func NewTerminalReader(f sandbox.Stream) *Reader {
	r := NewReader(f)
	r.terminal = true
	return r
}

// Pump is [Pump] from r, so that Flush flushes the sink. It must be called before Flush, once.
func (r *Reader) Pump(to Sink) {
	r.mu.Lock()
	r.onFlush = func() { flush(to) }
	r.mu.Unlock()
	defer close(r.closed)
	Pump(r, to)
}

// Tail returns the last 4 KiB that were read.
//
// Preconditions: no Read is running.
func (r *Reader) Tail() []byte { return r.tail }

// Close closes the file. A Read fails from then on.
func (r *Reader) Close() { _ = r.file.Close() }

// End marks the end of the run: Reads return the rest of its output and then io.EOF.
func (r *Reader) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	_ = r.file.SetReadDeadline(expired) // fails only if the file is closed
}

// Read reads up to len(b) bytes and returns io.EOF at the end.
func (r *Reader) Read(b []byte) (int, error) {
	n, err := r.read(b)
	if r.keepTail {
		r.tail = appendTail(r.tail, b[:n])
	}
	return n, err
}

func (r *Reader) read(b []byte) (int, error) {
	for {
		switch {
		case r.left == 0 && !r.flushing:
			return 0, io.EOF
		case r.left == 0:
			r.endFlush()
		case r.left > 0:
			// At most the pipe's content at End: another run may hold the other end and continue to write.
			b = b[:min(len(b), r.left)]
			deadline := time.Now().Add(drainWait)
			if r.conn == nil && !r.flushing {
				deadline = r.until
			}
			if err := r.file.SetReadDeadline(deadline); err != nil {
				return 0, err
			}
		case r.expecting:
			if n := r.spin(b); n > 0 {
				return n, nil
			}
		}
		n, err := r.file.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if r.left < 0 { // End or Flush has woken it
				r.interrupt()
				continue
			}
			n, err = r.readNow(b)
			if n == 0 && err == nil { // another process has read the rest
				r.left = 0
				continue
			}
		}
		if r.terminal && errors.Is(err, unix.EIO) { // the other end of a terminal is closed
			err = io.EOF
		}
		if r.left > 0 {
			r.left -= n
		} else if n >= pipeSize {
			r.enlarge()
		}
		return n, err
	}
}

// interrupt begins to flush or to drain.
func (r *Reader) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushing = r.flushed != nil
	r.until = time.Now().Add(agentWait)
	r.left = r.available() // after that: all that an ended run wrote is in the pipe
}

// endFlush flushes the sink, which has all that the pipe held, and wakes Flush.
func (r *Reader) endFlush() {
	r.onFlush()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = -1
	close(r.flushed)
	r.flushed = nil
	deadline := time.Time{}
	if r.ended {
		deadline = expired
	}
	_ = r.file.SetReadDeadline(deadline) // fails only if the file is closed
}

// Flush waits until all that the pipe holds now has been passed to the sink of the pump
// that reads it, or until the pump has returned. Only one Flush may be called at a time.
func (r *Reader) Flush() {
	done := make(chan struct{})
	r.mu.Lock()
	r.flushed = done
	_ = r.file.SetReadDeadline(expired)
	r.mu.Unlock()
	select {
	case <-done:
	case <-r.closed:
	}
}

// Waking an idle processor of a virtual machine takes 20 µs. Guests usually make the next call within
// microseconds of an answer, so the reader polls before it sleeps. Programs with 200 sequential calls take 3 to
// 5 % less time.
const (
	spinPeriod = 50 * time.Microsecond // twice the time until the next call arrives
	spinPause  = 32                    // answers without polling, after nothing arrived
)

// Expect makes the next Read poll for data. It must be called by the reading goroutine.
func (r *Reader) Expect() {
	r.expecting = r.pause == 0
	r.pause = max(0, r.pause-1)
}

// spin polls for expected data. It returns 0 if none arrives.
func (r *Reader) spin(b []byte) int {
	r.expecting = false
	for until := time.Now().Add(spinPeriod); ; {
		n, err := r.readNow(b)
		if n > 0 || err != nil { // the next read reports the error again
			return n
		}
		if time.Now().After(until) {
			r.pause = spinPause
			return 0
		}
	}
}

// readNow reads without waiting, and returns 0 if there is no data. It serves a Read whose
// deadline has passed: os.File does not try then, and a goroutine that had to wait for a
// processor may have been late from the start.
func (r *Reader) readNow(b []byte) (n int, err error) {
	if r.conn == nil {
		return 0, nil
	}
	if closed := r.conn.Control(func(fd uintptr) { n, err = unix.Read(int(fd), b) }); closed != nil {
		return 0, closed
	}
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case n == 0 && err == nil:
		return 0, io.EOF
	}
	return max(n, 0), err
}

// enlarge makes a pipe that was full larger. A pipe whose size the kernel refuses to change
// stays as it is.
func (r *Reader) enlarge() {
	if r.large || r.terminal {
		return
	}
	r.large = true
	_ = r.conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, largePipe) })
}

// terminalBuffer is more than the kernel keeps for a terminal's reader. The kernel does not report how
// much that is, because a part of it is still in its line discipline.
const terminalBuffer = 64 << 10

// available returns how many bytes the pipe holds (FIONREAD, which x/sys calls TIOCINQ).
func (r *Reader) available() (n int) {
	if r.terminal {
		return terminalBuffer
	}
	_ = r.conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// appendTail appends b and keeps the last tailLength bytes.
func appendTail(tail, b []byte) []byte {
	b = b[max(0, len(b)-tailLength):]
	if over := len(tail) + len(b) - tailLength; over > 0 {
		tail = tail[:copy(tail, tail[over:])]
	}
	return append(tail, b...)
}

// Sink consumes an output stream.
type Sink interface {
	// Buffer returns memory for the next read, of at least n bytes, or less if the sink is slow. It may block to
	// apply backpressure.
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
	line    func(string)
	max     atomic.Int64 // bytes of a line
	OnFlush func()       // called by Flush after an unfinished line; may be nil

	rest []byte
	open bool // there is an unfinished line, which may be empty
	buffer
}

// NewLines returns a sink that calls line with each line, without the newline. Of a line it
// keeps as many bytes as the given number of characters may have, and a little more, so
// that line can detect whether it was truncated.
func NewLines(characters int, line func(string)) *Lines {
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
		l.line(l.Take())
		b = after
	}
}

// Flush ends an unfinished line. Pump calls it at the end of the stream, and a Reader when
// Reader.Flush is being served.
func (l *Lines) Flush() {
	if l.open {
		l.line(l.Take())
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
