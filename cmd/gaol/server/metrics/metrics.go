package metrics

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gaol/cmd/gaol/server/quota"
	"gaol/runtime"
)

// Metrics are the metrics of one server. Its methods may be called from several goroutines at once.
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

// New returns metrics that are zero.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		runs:     counters("gaol_runs_total", "Runs that have ended, by kind (run, exec, command, evaluate, process, cell, snippet) and cause; exit: the program exited.", "kind", "cause"),
		failed:   counters("gaol_run_errors_total", "Runs without a result: canceled, refused, or failed by the server.", "kind"),
		times:    histograms("gaol_run_duration_seconds", "Wall-clock time of runs, without the time in the queue.", "kind"),
		queue: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gaol_queue_wait_seconds", Help: "Time before the turn of a run.", Buckets: seconds,
		}),
		refusals: counters("gaol_quota_refusals_total", "Requests that exceeded a quota, by limit and by whose it is: tenant or server.", "limit", "scope"),
		requests: counters("gaol_http_requests_total", "Requests, by operation and status. The operation is none for paths that do not exist, and for requests that were refused before.", "operation", "status"),
		answers:  histograms("gaol_http_request_duration_seconds", "Time of requests.", "operation"),
		lost:     prometheus.NewCounter(prometheus.CounterOpts{Name: "gaol_audit_lost_total", Help: "Lines that could not be written to the audit log."}),
	}
	m.registry.MustRegister(m.runs, m.failed, m.times, m.queue, m.refusals, m.requests, m.answers, m.lost,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels)
}

// Register adds a collector of values that are read with each scrape.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

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
