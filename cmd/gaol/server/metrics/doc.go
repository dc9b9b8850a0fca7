// Package metrics exports a server's metrics to Prometheus.
//
//	service ── Run, ... ──> counters, histograms ──┐
//	quota, at the time of a scrape ──> gauges ─────┴──> Handler ──> GET /metrics
//
// Labels have a bounded number of values: names of operations, causes and limits. A tenant is a label
// only if the server's settings name it; all others together are "other".
package metrics
