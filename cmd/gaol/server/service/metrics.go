package service

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/runtime"
)

// Metrics are the metrics of one server. Its methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	failed   *prometheus.CounterVec
	times    *prometheus.HistogramVec
	queue    prometheus.Histogram
	refusals *prometheus.CounterVec
	requests *prometheus.CounterVec
	answers  *prometheus.HistogramVec
	lost     prometheus.Counter
}

// seconds are the buckets of times: runs take from milliseconds to an hour.
var seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}

// NewMetrics returns metrics that are zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		runs:     newCounters("gaol_runs_total", "Runs that have ended, by kind (run, exec, command, evaluate, process, cell, snippet) and cause; exit: the program exited.", "kind", "cause"),
		failed:   newCounters("gaol_run_errors_total", "Runs without a result: canceled, refused, or failed by the server.", "kind"),
		times:    newHistograms("gaol_run_duration_seconds", "Wall-clock time of runs, without the time in the queue.", "kind"),
		queue: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gaol_queue_wait_seconds", Help: "Time before the turn of a run.", Buckets: seconds,
		}),
		refusals: newCounters("gaol_quota_refusals_total", "Requests that exceeded a quota, by limit and by whose it is: tenant or server.", "limit", "scope"),
		requests: newCounters("gaol_http_requests_total", "Requests, by operation and status. The operation is none for paths that do not exist, and for requests that were refused before.", "operation", "status"),
		answers:  newHistograms("gaol_http_request_duration_seconds", "Time of requests.", "operation"),
		lost:     prometheus.NewCounter(prometheus.CounterOpts{Name: "gaol_audit_lost_total", Help: "Lines that could not be written to the audit log."}),
	}
	m.registry.MustRegister(m.runs, m.failed, m.times, m.queue, m.refusals, m.requests, m.answers, m.lost,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func newCounters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newHistograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels)
}

// Handler serves the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Run counts a run that has ended. Kind is one of few constants.
func (m *Metrics) Run(kind string, cause runtime.Cause, d time.Duration) {
	m.runs.WithLabelValues(kind, cmp.Or(string(cause), "exit")).Inc()
	m.times.WithLabelValues(kind).Observe(d.Seconds())
}

// RunError counts a run that has ended without a result.
func (m *Metrics) RunError(kind string) { m.failed.WithLabelValues(kind).Inc() }

// Queued records how long a run has waited for its turn.
func (m *Metrics) Queued(d time.Duration) { m.queue.Observe(d.Seconds()) }

// Refused counts a request that exceeded a quota.
func (m *Metrics) Refused(e *quota.Exceeded) {
	scope := "tenant"
	if e.Server {
		scope = "server"
	}
	m.refusals.WithLabelValues(e.Limit, scope).Inc()
}

// Request counts a request. Operation is the pattern of its path, or empty.
func (m *Metrics) Request(operation string, status int, d time.Duration) {
	operation = cmp.Or(operation, "none")
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.answers.WithLabelValues(operation).Observe(d.Seconds())
}

// AuditLost counts a line that could not be written to the audit log.
func (m *Metrics) AuditLost() { m.lost.Inc() }

// usageMetrics collects what tenants use at the time of a scrape.
type usageMetrics struct{ *Service }

// otherTenants is the label of all tenants that the settings do not name.
const otherTenants = "other"

// gauges are the metrics of usageMetrics.
var gauges = []struct {
	desc  *prometheus.Desc
	value func(quota.Usage) float64
}{
	{gauge("gaol_sandboxes", "Sandboxes."), func(u quota.Usage) float64 { return float64(u.Sandboxes) }},
	{gauge("gaol_runs", "Active runs, processes and contexts, and waiting ones."), func(u quota.Usage) float64 { return float64(u.Runs) }},
	{gauge("gaol_reserved_memory_bytes", "Memory limits of active runs together."), func(u quota.Usage) float64 { return float64(u.Memory) }},
	{gauge("gaol_reserved_disk_bytes", "Disk limits of sandboxes together."), func(u quota.Usage) float64 { return float64(u.Disk) }},
	{gauge("gaol_egress_connections", "Connections of guests to external hosts."), func(u quota.Usage) float64 { return float64(u.EgressConnections) }},
	{gauge("gaol_reserved_cpus", "Processor limits of active runs together."), func(u quota.Usage) float64 { return u.CPUs }},
}

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help+" By tenants that the settings name; other is all others together.", []string{"tenant"}, nil)
}

// Describe implements [prometheus.Collector].
func (u usageMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, g := range gauges {
		to <- g.desc
	}
}

// Collect implements [prometheus.Collector].
func (u usageMetrics) Collect(to chan<- prometheus.Metric) {
	sums := map[string]quota.Usage{otherTenants: {}}
	for name := range u.Settings().Limits() {
		sums[name] = quota.Usage{}
	}
	for _, one := range u.Usage() {
		name := one.Tenant
		if _, known := sums[name]; !known {
			name = otherTenants
		}
		sum := sums[name]
		sum.Add(one)
		sums[name] = sum
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		for _, g := range gauges {
			to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(sums[name]), name)
		}
	}
}

// The kinds of runs, for metrics and errors.
const (
	KindRun      = "run"
	KindExec     = "exec"
	KindCommand  = "command"
	KindEvaluate = "evaluate"
	KindProcess  = "process" // of Spawn
	KindCell     = "cell"    // of a context
	KindSnippet  = "snippet" // of package snippets
)

// Metrics returns the metrics of the service, which also count runs and refusals.
func (s *Service) Metrics() *Metrics { return s.metrics }

// addMetrics connects the service with its metrics.
func (s *Service) addMetrics() {
	m := NewMetrics()
	s.metrics = m
	s.quotas.Observe(quota.Observer{Refused: m.Refused, Queued: m.Queued})
	m.registry.MustRegister(usageMetrics{s})
}

// Record adds the end of a run to the audit log and the metrics. Without a result and an evaluation, it has failed.
func (s *Service) Record(ctx context.Context, kind string, exit runtime.ExitEvent) {
	audit.Of(ctx).SetResult(exit.Result)
	audit.Of(ctx).SetEvaluation(exit.Evaluation)
	switch {
	case exit.Result != nil:
		s.metrics.Run(kind, exit.Result.Cause, exit.Result.Duration)
	case exit.Evaluation != nil:
		s.metrics.Run(kind, exit.Evaluation.Cause, exit.Evaluation.Duration)
	case exit.Err != nil:
		s.metrics.RunError(kind)
	}
}

// recordCode adds a program or snippet, and its permissions, to the audit log.
func recordCode(ctx context.Context, code string, permissions json.RawMessage) {
	audit.Of(ctx).SetCode(code)
	audit.Of(ctx).SetPermissions(permissions)
}

// recordCommand adds a command, and its permissions, to the audit log.
func recordCommand(ctx context.Context, name string, args []string, permissions json.RawMessage) {
	audit.Of(ctx).SetCommand(name, args)
	audit.Of(ctx).SetPermissions(permissions)
}
