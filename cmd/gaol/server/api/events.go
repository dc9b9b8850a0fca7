package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/internal/strictjson"
)

const (
	// firstSign is the longest time before the response of a run begins; followSign, of an operation with events only.
	// An earlier error sets the response's status.
	firstSign  = time.Second
	followSign = 100 * time.Millisecond

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

// sendEvents performs an operation with an event stream, which begins after some time if there is no event before. The
// context of the operation ends if the client has gone.
func sendEvents(o *operation.Operation, w http.ResponseWriter, r *http.Request, c *operation.Call, in any) {
	begin := firstSign
	if o.EventsOnly {
		begin = followSign
	}
	stream(r.Context(), w, begin, func(ctx context.Context, s *eventStream) error {
		c.To = s.send
		out, err := o.Do(ctx, c, in)
		switch {
		case err != nil:
			return problemOf(o, err)
		case o.EventsOnly:
			return nil
		}
		return s.send(service.Event{Name: service.EventResult, Data: out})
	})
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
	defer s.timer.Stop() // also if do panics: the response is gone then
	err := do(ctx, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil: // the client has gone
	case err == nil && !s.begun: // the client has had all events
		w.WriteHeader(http.StatusNoContent)
	case err != nil && !s.begun:
		ProblemOf(err).Write(w)
	case err != nil:
		_ = s.write(frame(service.Event{Name: service.EventError, Data: ProblemOf(err)}))
	}
	s.err = cmp.Or(s.err, errStreamEnded)
}

var errStreamEnded = errors.New("the response has ended")

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
// Preconditions: s.mu is held.
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
	data, err := strictjson.Encode(e.Data, "")
	if err != nil {
		return frame(service.Event{ID: e.ID, Name: service.EventError, Data: NewProblem(http.StatusInternalServerError, "the event cannot be encoded as JSON")})
	}
	var b []byte
	if e.ID > 0 {
		b = fmt.Appendf(b, "id: %d\n", e.ID)
	}
	return fmt.Appendf(b, "event: %s\ndata: %s\n", e.Name, data) // data ends in the first of two line feeds
}

// upload is the [Body] of a request.
type upload struct {
	w       http.ResponseWriter
	request *http.Request
	body    io.Reader
	err     error // of the body, or why it was refused
}

// open returns a reader of the body, at most some bytes.
func (u *upload) open(ctx context.Context, maxBytes int64) (io.Reader, error) {
	u.body = http.MaxBytesReader(u.w, &Body{u.request.Body, u.w, ctx}, maxBytes)
	if encoding := u.request.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		u.err = NewProblem(http.StatusUnsupportedMediaType, "Content-Encoding is not supported: send the bytes as they are")
	} else if u.request.ContentLength > maxBytes {
		u.err = service.UploadTooLarge(maxBytes)
	}
	return u, u.err
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (n int, err error) {
	if n, err = u.body.Read(p); err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}

// reason returns the error of an operation that may have read the body: the body's, if it has one.
func (u *upload) reason(err error) error {
	if err == nil || u.err == nil {
		return err
	}
	if large, ok := errors.AsType[*http.MaxBytesError](u.err); ok {
		return service.UploadTooLarge(large.Limit)
	}
	return u.err
}

// download writes data that is the result of an operation as the response.
type download struct {
	Writer
	operation *operation.Operation
	request   *http.Request
	begun     bool
	refused   bool // the response is a problem
}

// open returns the download for the context of its operation.
func (d *download) open(ctx context.Context) io.Writer {
	d.Ctx = ctx
	return d
}

// end ends the response of an operation that has written the data.
func (d *download) end(out any, err error) {
	switch {
	case err != nil && d.begun:
		panic(http.ErrAbortHandler) // so that the client sees that the data is incomplete
	case err != nil:
		problemOf(d.operation, err).Write(d.ResponseWriter)
	case d.operation.Trailer != "":
		d.Header().Set(d.operation.Trailer, fmt.Sprint(out))
	}
}

// begin sets the header before the first byte.
func (d *download) begin() {
	if d.begun {
		return
	}
	d.begun = true
	d.Header().Set("Content-Type", d.operation.Download)
	if d.operation.Trailer != "" {
		d.Header().Set("Trailer", d.operation.Trailer)
	}
}

// ServeContent sends a file, or the ranges of it that the client asks for.
func (d *download) ServeContent(modified time.Time, content io.ReadSeeker) {
	d.begin()
	http.ServeContent(d, d.request, "", modified, content)
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
	if d.refused {
		return len(p), nil
	}
	if d.Ctx.Err() == nil {
		d.begin()
	}
	return d.Writer.Write(p)
}
