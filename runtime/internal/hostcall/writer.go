package hostcall

import (
	"io"
	"sync"

	"gaol/internal/wire"
)

const (
	// maxBatch is how many bytes of frames may wait to be written: the size of a pipe.
	maxBatch = 64 << 10

	// maxUnsent is the same for frames of callers that cannot wait. A guest that causes more
	// does not read its answers: its half allows at most 256 pending calls.
	maxUnsent = 256 << 10
)

// Writer writes frames to a guest. A caller that finds no other writing writes, and continues
// with the frames that others add meanwhile: a guest with many calls gets many answers in
// one write, and wakes up once.
type Writer struct {
	to io.WriteCloser

	mu      sync.Mutex
	written sync.Cond
	waiting []byte // frames to be written next
	writing bool
	blocked int // callers that wait until something is written
	closed  bool
}

// NewWriter returns a writer to a pipe.
func NewWriter(to io.WriteCloser) *Writer {
	w := &Writer{to: to}
	w.written.L = &w.mu
	return w
}

// Answer writes the answer to a call, as Send does.
func (w *Writer) Answer(call uint32, failed bool, text []byte) {
	w.Send(wire.AppendAnswer(make([]byte, 0, len(text)+wire.AnswerSize), call, failed, text))
}

// Send writes a frame. It returns when the kernel has it, or when it is among at most maxBatch
// bytes that wait.
func (w *Writer) Send(frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wait(len(frame)) {
		w.write(frame)
	}
}

// TryAnswer is Answer for a caller that must not wait for the guest. It reports whether
// there was room.
func (w *Writer) TryAnswer(call uint32, failed bool, text []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(text)+wire.AnswerSize > maxUnsent {
		return w.closed
	}
	w.waiting = wire.AppendAnswer(w.waiting, call, failed, text)
	if !w.writing {
		w.writing = true
		go func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.flush(nil)
		}()
	}
	return true
}

// Close closes the pipe; a write that blocks fails. It may be called on nil.
func (w *Writer) Close() {
	if w != nil {
		w.to.Close()
	}
}

// wait waits until a frame of the given size fits in the batch, or until no caller is writing. It
// returns false once nothing can be written.
func (w *Writer) wait(size int) bool {
	for !w.closed && w.writing && len(w.waiting)+size > maxBatch {
		w.blocked++
		w.written.Wait()
		w.blocked--
	}
	return !w.closed
}

// write writes what waits and then the caller's frame.
//
// Preconditions: w.mu is held, wait returned true.
func (w *Writer) write(own []byte) {
	if w.writing {
		w.waiting = append(w.waiting, own...)
		return
	}
	w.writing = true
	w.flush(own)
}

// flush writes for all callers until nothing waits or another one wants to write.
//
// Preconditions: w.mu is held, w.writing is the caller's.
func (w *Writer) flush(own []byte) {
	w.flushWaiting()
	w.writeUnlocked(own)
	for w.blocked == 0 && len(w.waiting) > 0 {
		w.flushWaiting()
	}
	w.writing = false
	w.written.Broadcast()
}

func (w *Writer) flushWaiting() {
	batch := w.waiting
	w.waiting = nil
	w.writeUnlocked(batch)
}

// writeUnlocked writes without the lock.
func (w *Writer) writeUnlocked(b []byte) {
	if len(b) == 0 {
		return
	}
	if !w.closed {
		w.mu.Unlock()
		_, err := w.to.Write(b)
		w.mu.Lock()
		if err != nil {
			w.closed, w.waiting = true, nil
			w.to.Close() // a frame may be incomplete: no other can follow it
		}
	}
	w.written.Broadcast()
}
