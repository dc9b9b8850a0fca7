package runtime

import (
	"io"
	"sync"

	"gaol/internal/wire"
)

const (
	// mostTogether is how many bytes of frames wait for who writes: what a pipe takes.
	mostTogether = 64 << 10

	// mostPosted is the same for frames of those that can't wait. A guest that has so
	// many answers coming does not read them: its half has no more than 256 calls
	// under way.
	mostPosted = 256 << 10
)

// outbox has frames on their way to a guest. Whoever comes while nobody writes writes,
// and goes on with what others bring meanwhile: a guest that has many calls under way
// gets many answers at once, and is woken once.
type outbox struct {
	to io.WriteCloser

	mu      sync.Mutex
	written sync.Cond
	waiting []byte // frames that go next
	spare   []byte // memory for more
	writing bool
	queue   int // of those that wait until something was written
	closed  bool
}

func newOutbox(to io.WriteCloser) *outbox {
	o := &outbox{to: to}
	o.written.L = &o.mu
	return o
}

// answer sends the answer to a call. It returns when the kernel has it, or when it waits
// with mostTogether bytes at most.
func (o *outbox) answer(call uint32, failed bool, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch size := len(text) + wire.AnswerSize; {
	case !o.wait(size):
	case size > mostTogether:
		o.write(wire.AppendAnswer(make([]byte, 0, size), call, failed, text))
	default:
		o.waiting = wire.AppendAnswer(o.waiting, call, failed, text)
		o.write(nil)
	}
}

// send is answer for any frame.
func (o *outbox) send(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wait(len(frame)) {
		o.write(frame)
	}
}

// post is answer for one who must not wait for the guest. It reports whether there was
// room.
func (o *outbox) post(call uint32, failed bool, text []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.waiting)+len(text)+wire.AnswerSize > mostPosted {
		return o.closed
	}
	o.waiting = wire.AppendAnswer(o.waiting, call, failed, text)
	if !o.writing {
		o.writing = true
		go func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.writeOut(nil)
		}()
	}
	return true
}

// close lets nothing be written any more.
func (o *outbox) close() {
	o.to.Close() // who writes comes to know it
}

// wait waits until a frame of so many bytes may be added to those that wait, or until
// nobody writes. It reports false once nothing can be written any more.
func (o *outbox) wait(size int) bool {
	for !o.closed && o.writing && len(o.waiting)+size > mostTogether {
		o.queue++
		o.written.Wait()
		o.queue--
	}
	return !o.closed
}

// write has what waits written, and then a frame of the caller's.
//
// Preconditions: o.mu is held, wait said yes.
func (o *outbox) write(own []byte) {
	if o.writing {
		o.waiting = append(o.waiting, own...)
		return
	}
	o.writing = true
	o.writeOut(own)
}

// writeOut writes, for others too, until nothing waits or another one wants to.
//
// Preconditions: o.mu is held, o.writing is the caller's.
func (o *outbox) writeOut(own []byte) {
	o.writeWaiting()
	o.put(own)
	for o.queue == 0 && len(o.waiting) > 0 {
		o.writeWaiting()
	}
	o.writing = false
	o.written.Broadcast()
}

func (o *outbox) writeWaiting() {
	batch := o.waiting
	o.waiting, o.spare = o.spare[:0], nil
	o.put(batch)
	if cap(batch) <= mostPosted {
		o.spare = batch
	}
}

// put writes bytes without the lock.
func (o *outbox) put(b []byte) {
	if len(b) == 0 {
		return
	}
	if !o.closed {
		o.mu.Unlock()
		_, err := o.to.Write(b)
		o.mu.Lock()
		if err != nil {
			o.closed, o.waiting = true, nil
			o.to.Close() // a part of a frame may be on its way: no other makes sense after it
		}
	}
	o.written.Broadcast()
}
