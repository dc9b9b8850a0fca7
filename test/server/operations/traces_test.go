package operations

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"

	"gaol/cmd/gaol/server/daemon"
)

// collector receives traces.
type collector struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(r.URL.Path + "\n")
	c.text.Write(text)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// With OpenTelemetry's variables, requests are traced; a run of a tenant does not become part of the
// tenant's trace.
func TestTraces(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	p := start(t, daemon.Options{}, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_SERVICE_NAME=my-gaol", "OTEL_EXPORTER_OTLP_COMPRESSION=none")
	})
	p.expect(http.StatusOK, "GET", "/v1/sandboxes", nil)
	p.expect(http.StatusOK, "GET", "/healthz", nil)
	p.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.text.Bytes()
	for _, want := range []string{"/v1/traces\n", "GET /v1/sandboxes", "my-gaol"} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("no %q in what was sent: %q", want, got)
		}
	}
	if bytes.Contains(got, []byte("healthz")) {
		t.Error("health checks are traced")
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
	if c.text.Len() > 0 {
		t.Errorf("traces were sent: %q", c.text.Bytes())
	}
}
