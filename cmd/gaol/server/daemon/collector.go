package daemon

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector sends traces to a collector by OTLP over HTTP, in protobuf. It implements [otlptrace.Client].
// OpenTelemetry's own client also links gRPC, and would make a sixth of gaol's packages.
type collector struct {
	url      string
	header   http.Header
	compress bool
	timeout  time.Duration // of a batch with all attempts
	client   http.Client
}

// otlpVariable returns a variable for traces, or else the one for all signals.
func otlpVariable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// otlpForms lists the accepted values of variables, in addition to "".
var otlpForms = map[string][]string{
	"PROTOCOL": {"http/protobuf"}, "COMPRESSION": {"gzip", "none"}, "CERTIFICATE": nil, "CLIENT_CERTIFICATE": nil, "CLIENT_KEY": nil,
}

// newCollector returns the collector named by OpenTelemetry's environment variables. Unsupported values are errors.
func newCollector() (*collector, error) {
	if kind := os.Getenv("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not supported: want otlp or none", kind)
	}
	for name, accepted := range otlpForms {
		if value := otlpVariable(name); value != "" && !slices.Contains(accepted, value) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_%s: %q is not supported", name, value)
		}
	}
	c := &collector{header: http.Header{"Content-Type": {"application/x-protobuf"}}, compress: otlpVariable("COMPRESSION") == "gzip"}
	c.url = os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if c.url == "" {
		base := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://localhost:4318")
		c.url = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if u, err := url.Parse(c.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %q is not a valid URL of HTTP", c.url)
	}
	ms, err := strconv.Atoi(cmp.Or(otlpVariable("TIMEOUT"), "10000"))
	if err != nil || ms <= 0 {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is not a valid number of milliseconds", otlpVariable("TIMEOUT"))
	}
	c.timeout = time.Duration(ms) * time.Millisecond
	return c, c.setHeaders(otlpVariable("HEADERS"))
}

// setHeaders adds headers, as "name=value,name=value" with values encoded as in URLs.
func (c *collector) setHeaders(list string) error {
	for field := range strings.SplitSeq(list, ",") {
		name, text, found := strings.Cut(field, "=")
		value, err := url.PathUnescape(strings.TrimSpace(text))
		switch name = strings.TrimSpace(name); {
		case name == "" && !found:
		case err != nil || name == "" || !found: // the value may be a secret
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS: not a valid list of headers")
		default:
			c.header.Set(name, value)
		}
	}
	return nil
}

// Start does nothing.
func (c *collector) Start(context.Context) error { return nil }

// Stop closes the connections.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. It tries again while the collector is overloaded.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // wire-compatible with an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	if c.compress {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(body)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	for pause := time.Second; ; pause *= 2 {
		again, err := c.post(ctx, body)
		if err == nil || !again {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// post sends a request, and reports whether another attempt may succeed.
func (c *collector) post(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header = c.header.Clone()
	if c.compress {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("send to %s: %s", req.URL.Redacted(), resp.Status)
}

// traceVariables are the variables that turn traces on, if one is set. They are OpenTelemetry's own.
var traceVariables = []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// traceEnd is how long the last traces may take to be sent.
const traceEnd = 5 * time.Second

// wantsTraces reports whether the environment asks for traces.
func wantsTraces() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	for _, name := range traceVariables {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// startTraces starts sending traces if the environment asks for them. End sends the last ones.
func startTraces(ctx context.Context) (end func(*slog.Logger), err error) {
	if !wantsTraces() {
		return func(*slog.Logger) {}, nil
	}
	client, err := newCollector()
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	name := resource.NewSchemaless(semconv.ServiceName("gaol"))
	own, err := resource.Merge(name, resource.Environment()) // OTEL_SERVICE_NAME wins
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(own))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func(log *slog.Logger) {
		ctx, cancel := context.WithTimeout(context.Background(), traceEnd)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("traces", "err", err)
		}
	}, nil
}

// traced returns a function that traces a handler's requests, nil if there are no traces.
func traced() func(http.Handler) http.Handler {
	if !wantsTraces() {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return otelhttp.NewHandler(next, "request", otelhttp.WithPublicEndpointFn(isPublic), otelhttp.WithFilter(func(r *http.Request) bool {
			return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && r.URL.Path != "/metrics"
		}))
	}
}

// isPublic makes spans of tenants links of the server's spans, and not parents: a tenant does not
// decide which of the server's spans are recorded.
func isPublic(*http.Request) bool { return true }
