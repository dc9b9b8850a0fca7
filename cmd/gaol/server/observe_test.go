package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// observed serves mux as a server does for a tenant, with or without a tracer. It returns the audit log when the server has
// ended.
func observed(t *testing.T, mux *http.ServeMux, tracer trace.Tracer) (url string, end func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	f, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{metrics: service.NewMetrics(), audit: &audit.Log{}, log: slog.New(slog.DiscardHandler), tracer: tracer}
	if err := o.audit.Set(f); err != nil {
		t.Fatal(err)
	}
	attributed := o.attribute(mux)
	served := o.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attributed.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), &tenant.Tenant{Name: "token:t"})))
	}))
	var serving sync.WaitGroup // of upgraded connections, too, for which Close does not wait
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		served.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	return server.URL, func() string {
		server.Close()
		serving.Wait()
		if err := o.audit.Set(nil); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// Observed handlers can upgrade connections, control them and flush responses, and panics are logged.
func TestObservedHandlers(t *testing.T) {
	mux := http.NewServeMux()
	closed := make(chan struct{})
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
		defer close(closed)
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_, _, _ = c.Read(context.Background()) // until the client closes it
	})
	mux.HandleFunc("GET /flush", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("part"))
		rc := http.NewResponseController(w)
		if err := errors.Join(rc.Flush(), rc.EnableFullDuplex(), rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	url, end := observed(t, mux, nil)

	c, _, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.CloseNow()
	<-closed
	for _, path := range []string{"/flush", "/panic"} {
		if res, err := http.Get(url + path); err == nil {
			_ = res.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	log := end()
	for _, want := range []string{`"action":"GET /socket",`, `"status":101}`, `"action":"GET /flush","bytesIn":0,"bytesOut":4,`, `"action":"GET /panic",`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
}

// Spans follow OpenTelemetry's semantic conventions, and tenants cannot choose their names.
func TestTrace(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNotFound)
		w.WriteHeader(http.StatusInternalServerError) // has no effect
		_, _ = w.Write([]byte("absent"))
	})
	mux.HandleFunc("GET /written", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("part"))
		w.WriteHeader(http.StatusInternalServerError) // has no effect
	})
	mux.HandleFunc("GET /fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("POST /aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	spans := tracetest.NewSpanRecorder()
	url, end := observed(t, mux, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer(""))
	type span struct {
		Name       string
		Status     codes.Code
		Attributes map[string]any // those not listed have the defaults below
	}
	tests := []struct {
		method, path, body string
		header             map[string]string
		want               span
	}{
		{"PUT", "/things/7?secret", "body", map[string]string{"X-Forwarded-For": "192.0.2.1, 192.0.2.2"}, span{"PUT /things/{id}", codes.Unset, map[string]any{
			"http.request.method": "PUT", "http.route": "/things/{id}", "http.response.status_code": int64(404), "url.path": "/things/7",
			"http.request.body.size": int64(4), "http.response.body.size": int64(6), "client.address": "192.0.2.1"}}},
		{"HEAD", "/written", "", nil, span{"HEAD /written", codes.Unset, map[string]any{
			"http.request.method": "HEAD", "http.route": "/written", "url.path": "/written", "http.response.body.size": int64(4)}}},
		{"GET", "/fails", "", nil, span{"GET /fails", codes.Error, map[string]any{
			"http.route": "/fails", "http.response.status_code": int64(503), "url.path": "/fails"}}},
		{"POST", "/aborts", "", nil, span{"POST /aborts", codes.Unset, map[string]any{"http.request.method": "POST", "http.route": "/aborts", "url.path": "/aborts"}}},
		{"GET", "/healthz", "", nil, span{}},
		{"GET", "/readyz", "", nil, span{}},
		{"GET", "/metrics", "", nil, span{}},
		{"GET", "/else/%ff", "", map[string]string{"User-Agent": "agent\xff"}, span{"GET", codes.Unset, map[string]any{
			"http.response.status_code": int64(404), "url.path": "/else/\uFFFD", "user_agent.original": "agent\uFFFD", "http.response.body.size": int64(19)}}},
		{"SPOOF", "/things/7", "", nil, span{"HTTP /things/{id}", codes.Unset, map[string]any{
			"http.request.method": "_OTHER", "http.route": "/things/{id}", "http.response.status_code": int64(404), "url.path": "/things/7", "http.response.body.size": int64(6)}}},
	}
	var want, got []span
	for _, tc := range tests {
		r, err := http.NewRequest(tc.method, url+tc.path, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", "agent")
		r.Header.Set("Traceparent", "00-11111111111111111111111111111111-2222222222222222-01")
		for name, value := range tc.header {
			r.Header.Set(name, value)
		}
		if res, err := http.DefaultClient.Do(r); err == nil {
			_ = res.Body.Close()
		}
		if tc.want.Name == "" {
			continue
		}
		for name, value := range map[string]any{
			"http.request.method": "GET", "http.response.status_code": int64(200), "http.request.body.size": int64(0), "http.response.body.size": int64(0),
			"url.scheme": "http", "server.address": "127.0.0.1", "client.address": "127.0.0.1", "network.peer.address": "127.0.0.1", "user_agent.original": "agent",
		} {
			if _, ok := tc.want.Attributes[name]; !ok {
				tc.want.Attributes[name] = value
			}
		}
		want = append(want, tc.want)
	}
	http.DefaultClient.CloseIdleConnections()
	end()
	for _, s := range spans.Ended() {
		list := map[string]any{}
		for _, a := range s.Attributes() {
			list[string(a.Key)] = a.Value.AsInterface()
		}
		got = append(got, span{s.Name(), s.Status().Code, list})
		links := s.Links()
		if s.SpanKind() != trace.SpanKindServer || s.Parent().IsValid() || len(links) != 1 || links[0].SpanContext.SpanID().String() != "2222222222222222" ||
			links[0].SpanContext.TraceID() == s.SpanContext().TraceID() {
			t.Errorf("%s: kind %v, parent %v, links %v", s.Name(), s.SpanKind(), s.Parent(), links)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
