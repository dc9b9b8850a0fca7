package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector sends traces to a collector by OTLP over HTTP, in protobuf. It implements [otlptrace.Client].
// OpenTelemetry's own client also links gRPC, and would make a sixth of gaol's packages.
type collector struct {
	url    string
	header http.Header
	client http.Client
}

// otlpVariable returns a variable for traces, or else the one for all signals.
func otlpVariable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// otlpForms lists the accepted values of variables, in addition to "".
var otlpForms = map[string]string{
	"PROTOCOL": "http/protobuf", "COMPRESSION": "none", "CERTIFICATE": "", "CLIENT_CERTIFICATE": "", "CLIENT_KEY": "",
}

// newCollector returns the collector named by OpenTelemetry's environment variables. Unsupported values are errors.
func newCollector() (*collector, error) {
	if kind := os.Getenv("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not supported: want otlp or none", kind)
	}
	for name, accepted := range otlpForms {
		if value := otlpVariable(name); value != "" && value != accepted {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_%s: %q is not supported", name, value)
		}
	}
	c := &collector{header: http.Header{"Content-Type": {"application/x-protobuf"}}}
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
	c.client.Timeout = time.Duration(ms) * time.Millisecond
	headers, err := baggage.Parse(otlpVariable("HEADERS")) // OpenTelemetry defines their form as that of baggage
	if err != nil {
		return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: not a valid list of headers") // a value may be a secret
	}
	for _, m := range headers.Members() {
		c.header.Set(m.Key(), m.Value())
	}
	return c, nil
}

// Start does nothing.
func (c *collector) Start(context.Context) error { return nil }

// Stop closes the connections.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // wire-compatible with an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = c.header.Clone()
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send to %s: %s", req.URL.Redacted(), resp.Status)
	}
	return nil
}

// traceEnd is how long the last traces may take to be sent.
const traceEnd = 5 * time.Second

// wantsTraces reports whether OpenTelemetry's variables ask for traces.
func wantsTraces() bool {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	off := strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none"
	return !off && (exporter != "" || otlpVariable("ENDPOINT") != "")
}

// startTraces starts sending traces if the environment asks for them; otherwise the tracer is nil. End sends the last ones.
func startTraces(ctx context.Context) (tracer trace.Tracer, end func(*slog.Logger), err error) {
	if !wantsTraces() {
		return nil, func(*slog.Logger) {}, nil
	}
	client, err := newCollector()
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	exporter, err := otlptrace.New(ctx, client)
	name := resource.NewSchemaless(attribute.String("service.name", "gaol"))
	own, conflict := resource.Merge(name, resource.Environment()) // OTEL_SERVICE_NAME wins
	if err = errors.Join(err, conflict); err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(own))
	return provider.Tracer("gaol"), func(log *slog.Logger) {
		ctx, cancel := context.WithTimeout(context.Background(), traceEnd)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("traces", "err", err)
		}
	}, nil
}
