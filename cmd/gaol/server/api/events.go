package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"gaol/cmd/gaol/server/service"
)

const (
	// firstSign is when the response of a run begins if there is no event earlier.
	firstSign = time.Second

	// keepAlive is the time between the comments that show that a stream is alive.
	keepAlive = 15 * time.Second
)

// eventStream is a response of server-sent events. It begins with the first event, or the first
// comment: until then an error can still have its own status.
type eventStream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	cancel context.CancelCauseFunc // of the request

	mu    sync.Mutex
	begun bool
	err   error // that ended it
	timer *time.Timer
}

// stream calls do with an event stream, and closes that. The response begins after some time if
// there is no event before. The context of do ends if the client has gone.
func stream(ctx context.Context, w http.ResponseWriter, begin time.Duration, do func(context.Context, *eventStream) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &eventStream{w: w, rc: http.NewResponseController(w), cancel: cancel}
	s.mu.Lock()
	s.timer = time.AfterFunc(begin, s.sign)
	s.mu.Unlock()
	err := do(ctx, s)
	if err != nil && s.close() {
		problem := ProblemOf(err)
		if !s.begun {
			problem.Write(w)
			return
		}
		_ = s.write(frame(service.Event{Name: service.EventError, Data: problem}))
	}
	_ = s.close()
}

var errStreamEnded = errors.New("the response has ended")

// close stops the comments. It reports whether the client can still be written to.
func (s *eventStream) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	alive := s.err == nil || errors.Is(s.err, errStreamEnded)
	if s.err == nil {
		s.err = errStreamEnded
	}
	return alive
}

// send sends an event. It is a [service.Sink].
func (s *eventStream) send(e service.Event) error {
	if err, ok := e.Data.(error); ok {
		e.Data = ProblemOf(err)
	}
	text := frame(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return s.write(text)
}

// sign sends a comment if there was no event for some time.
func (s *eventStream) sign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_ = s.write([]byte(": keep-alive\n\n"))
	}
}

// write writes text to the client. If that fails, it cancels the request.
//
// Preconditions: s.mu is held, or nothing else uses s.
func (s *eventStream) write(text []byte) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.WriteHeader(http.StatusOK)
	}
	_, err := s.w.Write(text)
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.err = err
		s.cancel(err)
		return err
	}
	s.timer.Reset(keepAlive)
	return nil
}

// frame encodes an event.
func frame(e service.Event) []byte {
	data, err := encode(e.Data)
	if err != nil {
		return frame(service.Event{ID: e.ID, Name: service.EventError, Data: NewProblem(http.StatusInternalServerError, "the event cannot be encoded as JSON")})
	}
	var b bytes.Buffer
	if e.ID > 0 {
		b.WriteString("id: " + strconv.FormatUint(e.ID, 10) + "\n")
	}
	b.WriteString("event: " + string(e.Name) + "\ndata: ")
	b.Write(data)
	b.WriteByte('\n') // data ends in the first one
	return b.Bytes()
}

// encode encodes a value as one line of JSON.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.Bytes(), err
}

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
