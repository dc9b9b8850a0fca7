package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/felixge/httpsnoop"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// observer counts and logs requests.
type observer struct {
	metrics  *service.Metrics
	audit    *audit.Log
	log      *slog.Logger
	bodyTime time.Duration // see times
}

// exchange holds the facts about a request that are counted and logged.
type exchange struct {
	operation string         // the pattern of the path; empty if the request did not get that far
	tenant    *tenant.Tenant // nil for a request that was refused before, or that needs none
	body      timedBody
	response  httpsnoop.Metrics
	record    *audit.Record
}

// exchangeKey is the context key of an exchange.
type exchangeKey struct{}

// observe serves requests with next, and then counts and logs them.
func (o *observer) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &exchange{response: httpsnoop.Metrics{Code: http.StatusOK}}
		ctx := context.WithValue(r.Context(), exchangeKey{}, seen)
		if o.audit.Enabled() {
			ctx, seen.record = audit.NewContext(ctx, o.writeAudit)
		}
		r = r.WithContext(ctx)
		seen.body.limit(w, r, o.bodyTime)
		defer o.finish(r, seen) // also if a handler panics to abort the response
		seen.response.CaptureMetrics(w, func(w http.ResponseWriter) { next.ServeHTTP(seen.withUpgrade(w, r), r) })
	})
}

// withUpgrade records the status of a WebSocket's handshake, which httpsnoop omits.
func (e *exchange) withUpgrade(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.Header.Get("Upgrade") == "" {
		return w
	}
	return httpsnoop.Wrap(w, httpsnoop.Hooks{WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
		return func(code int) {
			if code == http.StatusSwitchingProtocols {
				e.response.Code = code
			}
			next(code)
		}
	}})
}

// attribute records the tenant of a request that the guard has let pass, and its operation.
func (o *observer) attribute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := r.Context().Value(exchangeKey{}).(*exchange)
		if seen.tenant = tenant.Lookup(r.Context()); seen.tenant != nil {
			seen.record.SetTenant(seen.tenant)
		}
		defer func() { // the multiplexer has set the fields of r
			seen.operation = r.Pattern
			if id := r.PathValue("id"); id != "" {
				seen.record.SetSandbox(id)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// finish counts and logs a request.
func (o *observer) finish(r *http.Request, seen *exchange) {
	answer := seen.response
	o.metrics.Request(seen.operation, answer.Code, answer.Duration)
	name, read := "", seen.body.received.Load()
	if seen.tenant != nil {
		name = seen.tenant.Name
	}
	o.log.Debug("request", "method", r.Method, "path", r.URL.Path, "tenant", name, "status", answer.Code,
		"duration", answer.Duration, "bytesIn", read, "bytesOut", answer.Written)
	if seen.tenant == nil {
		return // the log must not grow without a tenant whose quota of requests bounds it
	}
	seen.record.Update(func(e *audit.Entry) {
		if e.Action == "" {
			e.Action = seen.operation
		}
		e.BytesIn, e.BytesOut = read, answer.Written
	})
	seen.record.End(answer.Code)
}

// writeAudit writes a line of the audit log.
func (o *observer) writeAudit(e audit.Entry) {
	if err := o.audit.Write(e); err != nil {
		o.metrics.AuditLost()
		o.log.Error("a line is lost", "err", err)
	}
}

// addMetrics adds the metrics, for administrators.
func (s *Server) addMetrics(mux *http.ServeMux) {
	serve := s.observer.metrics.Handler()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !tenant.FromContext(r.Context()).Admin {
			api.WriteProblem(w, http.StatusForbidden, "only root, or a token with the right admin, may read the metrics")
			return
		}
		serve.ServeHTTP(w, r)
	})
}
