package stdio

import (
	"io"
	"sync"
)

// Output is an output stream of a process whose caller reads it. While the process runs,
// the caller's Read takes the bytes out of the pipe; without it the pipe fills up and the
// process waits. When the process ends, Drain moves the contents of the pipe here, so that
// nothing is lost and no descriptor stays open: 64 KiB at most, or the largest size of an
// unprivileged pipe (fs.pipe-max-size, 1 MiB).
type Output struct {
	mu   sync.Mutex
	from *Reader // nil after Drain
	rest []byte
	tail []byte
}

func newOutput(r *Reader) *Output {
	r.keepTail = true
	return &Output{from: r}
}

// Read returns io.EOF when the process has ended or closed the stream, and everything is
// read.
func (o *Output) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from != nil {
		return o.from.Read(b)
	}
	if len(b) == 0 {
		return 0, nil
	}
	if len(o.rest) == 0 {
		o.rest = nil
		return 0, io.EOF
	}
	n := copy(b, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// drain reads the rest of the pipe.
//
// Preconditions: the process and the reader have ended, so that a Read that holds the lock
// returns soon.
func (o *Output) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rest, _ = io.ReadAll(o.from) // any error is the end of the stream
	o.tail = o.from.Tail()
	o.from = nil
}
