package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
)

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
