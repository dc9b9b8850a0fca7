package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gaol/cmd/gaol/server/service"
)

const (
	// firstSign is when the response of a run begins that has no event yet.
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
		return frame(service.Event{ID: e.ID, Name: service.EventError, Data: NewProblem(http.StatusInternalServerError, "the event has no JSON")})
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
