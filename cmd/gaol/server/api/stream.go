package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gaol/cmd/gaol/server/service"
)

// maxStall is how long a client may take to send or receive a piece of a streamed body. There is
// no limit for the whole body.
const maxStall = time.Minute

// Stream gives an operation the request and the response of HTTP, for a body that is not held in
// memory. It is exported because huma reads exported fields only.
type Stream struct {
	r *http.Request
	w http.ResponseWriter
}

// Resolve implements [huma.Resolver].
func (s *Stream) Resolve(ctx huma.Context) []error {
	s.r, s.w = humago.Unwrap(ctx)
	return nil
}

// upload is the body of a request, at most max bytes. A client that sends nothing for some time
// makes it fail, and so does the end of its context.
type upload struct {
	ctx     context.Context
	body    io.Reader
	control *http.ResponseController
	err     error // of the body
}

// newUpload returns the body of the request. The caller calls close.
func (s *Stream) newUpload(ctx context.Context, maxBytes int64) (u *upload, err error) {
	if encoding := s.r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, problem(http.StatusUnsupportedMediaType, "Content-Encoding is not supported: send the bytes as they are")
	}
	if s.r.ContentLength > maxBytes {
		return nil, tooLarge(maxBytes)
	}
	return &upload{ctx: ctx, body: http.MaxBytesReader(s.w, s.r.Body, maxBytes), control: http.NewResponseController(s.w)}, nil
}

func tooLarge(maxBytes int64) error {
	return problem(http.StatusRequestEntityTooLarge, (&http.MaxBytesError{Limit: maxBytes}).Error()+": your quota is uploadBytes")
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (n int, err error) {
	// An error means that the connection has no deadlines or has gone; reading reports the latter.
	_ = u.control.SetReadDeadline(time.Now().Add(maxStall))
	stop := context.AfterFunc(u.ctx, func() { _ = u.control.SetReadDeadline(past) })
	defer stop()
	n, err = u.body.Read(p)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}

// past is a deadline that makes an operation fail at once.
var past = time.Unix(1, 0)

// close ends the use of the body. The connection has no deadline then: net/http reads from it to
// see that the client has gone.
func (u *upload) close() { _ = u.control.SetReadDeadline(time.Time{}) }

// fail returns the error of an operation that has read the body: the body's, if it has one.
func (u *upload) fail(err error) error {
	large, isLarge := errors.AsType[*http.MaxBytesError](u.err)
	switch {
	case u.err == nil:
		return fail(err)
	case isLarge:
		return tooLarge(large.Limit)
	case u.ctx.Err() != nil:
		return fail(context.Cause(u.ctx))
	case errors.Is(u.err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "the body stalled")
	}
	return problem(http.StatusBadRequest, "the body ended early")
}

// download writes the body of a response. A client that receives nothing for some time makes it
// fail, and so does the end of its context.
type download struct {
	http.ResponseWriter
	ctx     context.Context
	control *http.ResponseController
}

func newDownload(ctx context.Context, w http.ResponseWriter) *download {
	return &download{w, ctx, http.NewResponseController(w)}
}

// Write implements [io.Writer].
func (d *download) Write(p []byte) (int, error) {
	_ = d.control.SetWriteDeadline(time.Now().Add(maxStall))
	stop := context.AfterFunc(d.ctx, func() { _ = d.control.SetWriteDeadline(past) })
	defer stop()
	return d.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (d *download) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// close ends the body.
func (d *download) close() { _ = d.control.SetWriteDeadline(time.Time{}) }

// use returns a sandbox of the request's tenant. The caller calls release.
func (a *API) use(ctx context.Context, in InSandbox) (_ context.Context, _ *service.Sandbox, release func(), err error) {
	ctx, sb, release, err := a.service.Use(ctx, tenantOf(ctx), in.ID)
	if err != nil {
		return nil, nil, nil, fail(err)
	}
	return ctx, sb, release, nil
}
