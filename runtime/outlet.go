package runtime

import (
	"io"
	"sync"
	"time"
)

// past is a deadline that is over.
var past = time.Unix(1, 0)

// outlet is an output stream of a spawned process. As long as it runs, its caller's Read
// is what takes the output in: until then the kernel holds some of it, and then the
// process waits. What the kernel holds at the process's end is kept here, so that
// nothing is lost and no descriptor is held: 64 KiB at most, or as much as a process
// without privileges may have a pipe hold (fs.pipe-max-size, 1 MiB).
type outlet struct {
	mu   sync.Mutex // held by the one who reads
	from io.Reader  // nil once all is taken in
	rest []byte     // that nobody has read yet
	tail []byte     // the end of all that came, as long as something may
}

// Read returns io.EOF when the process has ended, or has closed the stream, and all is
// read.
func (o *outlet) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from != nil {
		return o.take(b)
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

func (o *outlet) take(b []byte) (int, error) {
	n, err := o.from.Read(b)
	o.tail = appendTail(o.tail, b[:n])
	return n, err
}

// takeIn takes in all that there is.
//
// Preconditions: the process has ended, and the read deadline of what it wrote to is
// over: a Read that holds the lock is about to return.
func (o *outlet) takeIn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for buf := make([]byte, 32<<10); ; {
		n, err := o.take(buf)
		o.rest = append(o.rest, buf[:n]...)
		if err != nil {
			break
		}
	}
	o.from = nil
}
