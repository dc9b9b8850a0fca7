package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// A stream begins late, is kept alive, and ends.
func TestStreamKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		stream(t.Context(), w, firstSign, func(_ context.Context, s *eventStream) error {
			time.Sleep(firstSign - time.Millisecond)
			synctest.Wait()
			s.mu.Lock()
			if s.begun {
				t.Error("it has begun at once")
			}
			s.mu.Unlock()
			time.Sleep(2*keepAlive + firstSign)
			return s.send(service.Event{ID: 3, Name: service.EventStdout, Data: resultjson.Output{Text: "<\n"}})
		})
		comment := ": keep-alive\n\n"
		if got := w.Body.String(); got != strings.Repeat(comment, 3)+"id: 3\nevent: stdout\ndata: {\"text\":\"<\\n\"}\n\n" {
			t.Errorf("%q", got)
		}
		before := w.Body.Len()
		time.Sleep(3 * keepAlive)
		if w.Body.Len() != before {
			t.Error("it is kept alive after its end")
		}
	})
}

// An error has its own status before the stream has begun, and is an event afterwards.
func TestStreamError(t *testing.T) {
	failed := &service.Error{Code: service.Conflict, Err: errors.New("reason"), RetryAfter: time.Second}
	w := httptest.NewRecorder()
	stream(t.Context(), w, time.Hour, func(context.Context, *eventStream) error { return failed })
	if w.Code != http.StatusConflict || w.Header().Get("Retry-After") != "1" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	stream(t.Context(), w, time.Hour, func(_ context.Context, s *eventStream) error {
		if err := s.send(service.Event{Name: service.EventStdout, Data: resultjson.Output{}}); err != nil {
			t.Error(err)
		}
		return failed
	})
	if got := w.Body.String(); w.Code != http.StatusOK || !strings.HasSuffix(got, "\n\nevent: error\ndata: {\"type\":\"about:blank\",\"title\":\"Conflict\",\"status\":409,\"code\":\"conflict\",\"detail\":\"reason\",\"retryAfterMs\":1000}\n\n") {
		t.Errorf("%d %q", w.Code, got)
	}
}

// broken is a response whose client has gone.
type broken struct{ *httptest.ResponseRecorder }

var errGone = errors.New("gone")

func (broken) Write([]byte) (int, error) { return 0, errGone }

// A failed write cancels the request, also one of a comment.
func TestStreamBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream(t.Context(), broken{httptest.NewRecorder()}, firstSign, func(ctx context.Context, s *eventStream) error {
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, errGone) {
				t.Error(err)
			}
			if err := s.send(service.Event{Name: service.EventStdout}); !errors.Is(err, errGone) {
				t.Error(err)
			}
			return context.Cause(ctx)
		})
	})
}

// Data without JSON does not break the stream.
func TestFrameWithoutJSON(t *testing.T) {
	got := string(frame(service.Event{ID: 1, Name: service.EventResult, Data: &runtime.Result{Value: []byte("{")}}))
	if !strings.HasPrefix(got, "id: 1\nevent: error\ndata: {") || strings.Count(got, "\n") != 4 {
		t.Errorf("%q", got)
	}
}
