package service

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/runtime"
)

// Metrics are the metrics of one server. Its methods may be called concurrently.
type Metrics struct {
	registry           *prometheus.Registry
	runs, failed       *prometheus.CounterVec
	times              *prometheus.HistogramVec
	queue              prometheus.Observer
	refusals, requests *prometheus.CounterVec
	answers            *prometheus.HistogramVec
	lost               prometheus.Counter

	redelivered, discarded, lostRuns prometheus.Counter // of batch runs
}

// Seconds are the buckets of times: runs take from milliseconds to an hour.
var Seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}

// NewMetrics returns metrics that are zero.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	auto := promauto.With(registry)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter { return counters(name, help).WithLabelValues() }
	histograms := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: Seconds}, labels)
	}
	return &Metrics{
		registry: registry,
		runs:     counters("gaol_runs_total", "Runs that have ended, by kind (run, exec, command, evaluate, process, cell, snippet, build) and cause; exit: the program exited.", "kind", "cause"),
		failed:   counters("gaol_run_errors_total", "Runs without a result: canceled, refused, or failed by the server.", "kind"),
		times:    histograms("gaol_run_duration_seconds", "Wall-clock time of runs, without the time in the queue.", "kind"),
		queue:    histograms("gaol_queue_wait_seconds", "Time before the turn of a run.").WithLabelValues(),
		refusals: counters("gaol_quota_refusals_total", "Requests that exceeded a quota, by limit and by whose it is: tenant or server.", "limit", "scope"),
		requests: counters("gaol_http_requests_total", "Requests, by operation and status. The operation is none for paths that do not exist, and for requests that were refused before.", "operation", "status"),
		answers:  histograms("gaol_http_request_duration_seconds", "Time of requests.", "operation"),
		lost:     counter("gaol_audit_lost_total", "Lines that could not be written to the audit log."),

		redelivered: counter("gaol_fleet_redeliveries_total", "Batch runs that have begun again."),
		discarded:   counter("gaol_fleet_results_discarded_total", "Results of batch runs that had another one, of a faster machine or by a cancelation."),
		lostRuns:    counter("gaol_fleet_lost_total", "Batch runs that no machine has completed."),
	}
}

// Handler serves the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Add adds metrics of another package.
func (m *Metrics) Add(c prometheus.Collector) { m.registry.MustRegister(c) }

// Run counts a run that has ended. Kind is one of few constants.
func (m *Metrics) Run(kind string, cause runtime.Cause, d time.Duration) {
	m.runs.WithLabelValues(kind, cmp.Or(string(cause), "exit")).Inc()
	m.times.WithLabelValues(kind).Observe(d.Seconds())
}

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

// Redelivered counts a batch run that has begun again.
func (m *Metrics) Redelivered() { m.redelivered.Inc() }

// Discarded counts a result of a batch run that had another one.
func (m *Metrics) Discarded() { m.discarded.Inc() }

// Lost counts a batch run that no machine has completed.
func (m *Metrics) Lost() { m.lostRuns.Inc() }

// otherTenants is the label of all tenants that the settings do not name.
const otherTenants = "other"

// gauges are the metrics of what tenants use.
var gauges = []struct{ name, help, limit string }{
	{"gaol_sandboxes", "Sandboxes.", "sandboxes"},
	{"gaol_runs", "Active runs, processes and contexts, and waiting ones.", "runs"},
	{"gaol_reserved_memory_bytes", "Memory limits of active runs together.", "memoryBytes"},
	{"gaol_reserved_disk_bytes", "Disk limits of sandboxes together.", "diskBytes"},
	{"gaol_reserved_files", "Limits of files of sandboxes together.", "files"},
	{"gaol_egress_connections", "Connections of guests to external hosts.", "egressConnections"},
	{"gaol_reserved_cpus", "Processor limits of active runs together.", "cpus"},
}

// collectUsage is a [prometheus.CollectorFunc] of what tenants use at the time of a scrape.
func (s *Service) collectUsage(to chan<- prometheus.Metric) {
	sums := map[string]map[string]float64{otherTenants: {}}
	for name := range s.Settings().Limits() {
		sums[name] = map[string]float64{}
	}
	for name, use := range s.quotas.Usage() {
		sum, known := sums[name]
		if !known {
			sum = sums[otherTenants]
		}
		for limit, n := range use {
			sum[limit] += n
		}
	}
	for _, g := range gauges {
		desc := prometheus.NewDesc(g.name, g.help+" By tenants that the settings name; other is all others together.", []string{"tenant"}, nil)
		for name, sum := range sums {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, sum[g.limit], name)
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
	KindBuild    = "build"   // of an image, with all commands
)

// Metrics returns the metrics of the service, which also count runs and refusals.
func (s *Service) Metrics() *Metrics { return s.metrics }

// record adds the end of a run to the audit log and the metrics. Its result is a *runtime.Result or a
// *runtime.Evaluation; without one, it has failed.
func (s *Service) record(ctx context.Context, kind string, result any, err error) {
	if r, ok := result.(*runtime.Result); ok && r != nil {
		audit.Of(ctx).SetEnd(&r.ExitCode, r.Cause, r.Denials, r.Usage)
		s.metrics.Run(kind, r.Cause, r.Duration)
	} else if e, ok := result.(*runtime.Evaluation); ok && e != nil {
		audit.Of(ctx).SetEnd(nil, e.Cause, e.Denials, e.Usage)
		s.metrics.Run(kind, e.Cause, e.Duration)
	} else if err != nil {
		s.metrics.failed.WithLabelValues(kind).Inc()
	}
}
