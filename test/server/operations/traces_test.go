package operations

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gaol/cmd/gaol/server/daemon"
)

// collector receives traces.
type collector struct {
	mu     sync.Mutex
	traces tracepb.TracesData
	errs   []error
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path != "/v1/traces" {
		err = errors.Join(err, fmt.Errorf("path %s", r.URL.Path))
	}
	c.errs = append(c.errs, err, proto.UnmarshalOptions{Merge: true}.Unmarshal(text, &c.traces))
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// With OpenTelemetry's variables, requests are traced; a run of a tenant does not become part of the
// tenant's trace. No request of a tenant makes a batch invalid.
func TestTraces(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	p := start(t, daemon.Options{}, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_SERVICE_NAME=my-gaol", "OTEL_EXPORTER_OTLP_COMPRESSION=none")
	})
	r, err := http.NewRequest("GET", "http://gaol/v1/sandboxes", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", "00-11111111111111111111111111111111-2222222222222222-01")
	res, err := p.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	p.expect(http.StatusOK, "GET", "/healthz", nil)
	p.expect(http.StatusNotFound, "GET", "/v1/sandboxes/%ff", nil)
	p.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	var services, spans []string
	for _, rs := range c.traces.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			services = append(services, a.Key+"="+a.Value.GetStringValue())
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				text := fmt.Sprintf("%v %s parent=%x", s.Kind, s.Name, s.ParentSpanId)
				for _, l := range s.Links {
					text += fmt.Sprintf(" link=%x/%x", l.TraceId, l.SpanId)
				}
				spans = append(spans, text)
			}
		}
	}
	want := []string{
		"SPAN_KIND_SERVER GET /v1/sandboxes parent= link=11111111111111111111111111111111/2222222222222222",
		"SPAN_KIND_SERVER GET /v1/sandboxes/{id} parent=",
	}
	if diff := cmp.Diff(want, spans); diff != "" || !slices.Contains(services, "service.name=my-gaol") || errors.Join(c.errs...) != nil {
		t.Errorf("%v, %v (-want +got):\n%s", services, c.errs, diff)
	}
}

// Variables that do not ask for traces, or none, start nothing.
func TestNoTraces(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	p := start(t, daemon.Options{}, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL)
	})
	p.expect(http.StatusOK, "GET", "/v1/sandboxes", nil)
	p.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errs) > 0 {
		t.Errorf("traces were sent: %v", &c.traces)
	}
}
