package hostcall

import (
	"io"

	"gaol/internal/wire"
)

// Writer writes frames to a guest.
type Writer struct {
	to     io.WriteCloser
	turn   chan struct{} // holds an element during a write; unlike a mutex it is first come, first served
	unsent chan struct{} // a semaphore: the frames of callers that do not wait
}

// NewWriter returns a writer to a pipe.
func NewWriter(to io.WriteCloser) *Writer {
	return &Writer{to: to, turn: make(chan struct{}, 1), unsent: make(chan struct{}, MaxPending)}
}

// Answer writes the answer to a call, as Send does.
func (w *Writer) Answer(call uint32, failed bool, text []byte) {
	w.Send(wire.AppendAnswer(make([]byte, 0, len(text)+wire.AnswerSize), call, failed, text))
}

// Send writes a frame. It returns when the kernel has it, or the pipe is closed.
func (w *Writer) Send(frame []byte) {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if _, err := w.to.Write(frame); err != nil {
		w.to.Close() // the frame may be incomplete: no other can follow it
	}
}

// TryAnswer is Answer for a caller that must not wait for the guest. It returns false if
// too many answers wait: their guest does not read.
func (w *Writer) TryAnswer(call uint32, failed bool, text []byte) bool {
	select {
	case w.unsent <- struct{}{}:
	default:
		return false
	}
	go func() {
		w.Answer(call, failed, text)
		<-w.unsent
	}()
	return true
}

// Close closes the pipe; a write that blocks fails. It may be called on nil.
func (w *Writer) Close() {
	if w != nil {
		w.to.Close()
	}
}
