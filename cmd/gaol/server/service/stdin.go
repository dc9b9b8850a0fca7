package service

import (
	"context"
	"io"
	"sync/atomic"

	"gaol/runtime/requestjson"
)

const (
	// maxWrite bounds the bytes of one write to a process's standard input.
	maxWrite = 1 << 20

	// maxWriters bounds the writes that wait for one process.
	maxWriters = 8
)

// stdin is the standard input of a process. One request writes at a time.
type stdin struct {
	pipe    io.WriteCloser
	ended   <-chan struct{} // closed when the process has ended
	turn    chan struct{}   // a lock: holds an element while a request writes
	closed  bool            // guarded by turn
	writers atomic.Int32
}

// WriteStdin writes to the process's standard input. It waits until the process has read enough that
// the rest fits in a pipe. If ctx ends before, the rest of the data is still written.
func (p *Process) WriteStdin(ctx context.Context, _ *Call, in *requestjson.StdinIn) (None, error) {
	data := in.Bytes
	if in.Text != "" {
		if len(data) > 0 {
			return None{}, Refuse(Invalid, "want either text or bytes")
		}
		data = []byte(in.Text)
	}
	if len(data) > maxWrite {
		return None{}, Refuse(TooLarge, "more than %d bytes at once", maxWrite)
	}
	s := p.stdin
	defer s.writers.Add(-1)
	if s.writers.Add(1) > maxWriters {
		return None{}, exceeded("%d requests already wait for the process to read", maxWriters)
	}
	if err := s.begin(ctx); err != nil {
		return None{}, err
	}
	written := make(chan error, 1)
	go func() {
		defer func() { <-s.turn }()
		written <- s.write(data, in.Close)
	}()
	select {
	case err := <-written:
		return None{}, err
	case <-ctx.Done():
		return None{}, context.Cause(ctx)
	}
}

// begin waits for the turn of a request while the process is active.
func (s *stdin) begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-s.ended:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.ended:
		<-s.turn
		return errEnded
	default:
		return nil
	}
}

// errInputClosed is the error of a write after the end of the input.
var errInputClosed = Refuse(Conflict, "the process's standard input is closed")

// write writes to the pipe. It returns when the process has read, or ended.
//
// Preconditions: the caller holds the turn.
func (s *stdin) write(data []byte, end bool) error {
	if s.closed {
		return errInputClosed
	}
	var err error
	if len(data) > 0 {
		if _, err = s.pipe.Write(data); err != nil { // the process has closed the input, or ended
			err = errInputClosed
		}
	}
	if s.closed = end || err != nil; s.closed {
		_ = s.pipe.Close()
	}
	return err
}

// copyFrom passes a client's input to the process, until either ends.
func (s *stdin) copyFrom(ctx context.Context, r io.Reader) {
	if s.begin(ctx) != nil {
		return
	}
	defer func() { <-s.turn }()
	buffer := make([]byte, 32<<10)
	for {
		if n, err := r.Read(buffer); s.write(buffer[:n], err == io.EOF) != nil || err != nil {
			return
		}
	}
}
