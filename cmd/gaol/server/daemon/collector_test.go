package daemon

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector gets spans with the headers that the variables name; its errors are returned.
func TestCollector(t *testing.T) {
	var requests atomic.Int32
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if strings.HasPrefix(r.URL.Path, "/rejected") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		got = r
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL+"/base/")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-general=1")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key = a%2Cb , x-other=c=d")
	spans := []*tracepb.ResourceSpans{{SchemaUrl: "a schema"}}
	c, err := newCollector()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.UploadTraces(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	var sent tracepb.TracesData
	if err := proto.Unmarshal(body, &sent); err != nil || len(sent.ResourceSpans) != 1 || sent.ResourceSpans[0].SchemaUrl != "a schema" {
		t.Errorf("%v, %v", &sent, err)
	}
	header := []string{got.URL.Path, got.Header.Get("Content-Type"), got.Header.Get("X-Key"), got.Header.Get("X-Other"), got.Header.Get("X-General")}
	if diff := cmp.Diff([]string{"/base/v1/traces", "application/x-protobuf", "a,b", "c=d", ""}, header); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.URL+"/rejected")
	if c, err = newCollector(); err != nil {
		t.Fatal(err)
	}
	if err := c.UploadTraces(t.Context(), spans); err == nil || requests.Load() != 2 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
}

// Variables that the collector cannot obey are errors.
func TestCollectorRejects(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_TRACES_EXPORTER":                 "console",
		"OTEL_EXPORTER_OTLP_PROTOCOL":          "grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":   "http/json",
		"OTEL_EXPORTER_OTLP_COMPRESSION":       "gzip",
		"OTEL_EXPORTER_OTLP_CERTIFICATE":       "/ca.pem",
		"OTEL_EXPORTER_OTLP_HEADERS":           "secret",
		"OTEL_EXPORTER_OTLP_TIMEOUT":           "soon",
		"OTEL_EXPORTER_OTLP_ENDPOINT":          "collector:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":   "unix:///run/collector",
		"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": "/key.pem",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := newCollector(); err == nil || !strings.Contains(err.Error(), "OTEL_") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}
