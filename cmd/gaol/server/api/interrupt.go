package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// Body is the body of a request. The server's deadlines make it fail if it is too slow, and so does the end of its
// context. Errors are that of the context, or a [Problem].
type Body struct {
	io.ReadCloser
	W   http.ResponseWriter
	Ctx context.Context
}

// Read implements [io.Reader].
func (b *Body) Read(p []byte) (n int, err error) {
	defer interrupt(b.Ctx, http.NewResponseController(b.W).SetReadDeadline)()
	if n, err = b.ReadCloser.Read(p); err != nil && err != io.EOF {
		if err = bodyProblem(err); b.Ctx.Err() != nil {
			err = context.Cause(b.Ctx)
		}
	}
	return n, err
}

// bodyProblem returns the problem for an error of the body of a request.
func bodyProblem(err error) *Problem {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return NewProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return NewProblem(http.StatusBadRequest, "the body ended early")
}

// Writer is a response. The server's deadlines make it fail if the client is too slow, and so does the end of its
// context.
type Writer struct {
	http.ResponseWriter
	Ctx context.Context
}

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	if w.Ctx.Err() != nil {
		return 0, context.Cause(w.Ctx)
	}
	defer interrupt(w.Ctx, http.NewResponseController(w.ResponseWriter).SetWriteDeadline)()
	return w.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (w *Writer) FlushError() error {
	c := http.NewResponseController(w.ResponseWriter)
	defer interrupt(w.Ctx, c.SetWriteDeadline)()
	return c.Flush()
}

// Unwrap is for [http.ResponseController].
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// interrupt sets a deadline of a connection to the past when ctx ends, until stop is called.
func interrupt(ctx context.Context, set func(time.Time) error) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		for { // the connection may just set its own deadline
			_ = set(time.Unix(1, 0)) // fails if the connection is closed
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func() { cancel(); close(done) }
}
