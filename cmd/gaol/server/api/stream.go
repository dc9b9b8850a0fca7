package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"gaol/cmd/gaol/server/service"
)

// upload is the body of a request, at most max bytes. The server's deadlines make it fail if it is too
// slow, and so does the end of its context.
type upload struct {
	ctx     context.Context
	body    io.Reader
	control *http.ResponseController
	err     error // of the body
}

// newUpload returns the body of the request.
func newUpload(ctx context.Context, w http.ResponseWriter, r *http.Request, maxBytes int64) (u *upload, err error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "Content-Encoding is not supported: send the bytes as they are")
	}
	if r.ContentLength > maxBytes {
		return nil, service.UploadTooLarge(maxBytes)
	}
	return &upload{ctx: ctx, body: http.MaxBytesReader(w, r.Body, maxBytes), control: http.NewResponseController(w)}, nil
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (n int, err error) {
	defer interrupt(u.ctx, u.control.SetReadDeadline)()
	n, err = u.body.Read(p)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}

// interrupt sets a deadline of a connection to the past when ctx ends, until stop is called.
func interrupt(ctx context.Context, set func(time.Time) error) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		for { // the connection may just set its own deadline
			_ = set(time.Unix(1, 0)) // fails if the connection is closed
			select {
			case <-done:
				return
			case <-time.After(interruptAgain):
			}
		}
	})
	return func() { cancel(); close(done) }
}

const interruptAgain = 10 * time.Millisecond

// reason returns the error of an operation that has read the body: the body's, if it has one.
func (u *upload) reason(err error) error {
	large, isLarge := errors.AsType[*http.MaxBytesError](u.err)
	switch {
	case u.err == nil:
		return err
	case isLarge:
		return service.UploadTooLarge(large.Limit)
	case u.ctx.Err() != nil:
		return context.Cause(u.ctx)
	case errors.Is(u.err, os.ErrDeadlineExceeded):
		return NewProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return NewProblem(http.StatusBadRequest, "the body ended early")
}

// download writes the body of a response. The server's deadlines make it fail if the client is too
// slow, and so does the end of its context.
type download struct {
	http.ResponseWriter
	ctx     context.Context
	control *http.ResponseController
	refused bool // the response is a problem
}

func newDownload(ctx context.Context, w http.ResponseWriter) *download {
	return &download{ResponseWriter: w, ctx: ctx, control: http.NewResponseController(w)}
}

// WriteHeader implements [http.ResponseWriter]. Errors of package http become problems.
func (d *download) WriteHeader(status int) {
	if d.refused = status >= 400; d.refused {
		WriteProblem(d.ResponseWriter, status, "")
		return
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write implements [io.Writer].
func (d *download) Write(p []byte) (int, error) {
	if d.ctx.Err() != nil {
		return 0, context.Cause(d.ctx)
	}
	if d.refused {
		return len(p), nil
	}
	defer interrupt(d.ctx, d.control.SetWriteDeadline)()
	return d.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (d *download) Unwrap() http.ResponseWriter { return d.ResponseWriter }
