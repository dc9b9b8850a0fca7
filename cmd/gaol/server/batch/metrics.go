package batch

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	pendingDesc = prometheus.NewDesc("gaol_fleet_queue_pending", "Batch runs that no machine has begun.", nil, nil)
	oldestDesc  = prometheus.NewDesc("gaol_fleet_queue_oldest_seconds", "Age of the oldest batch run of the queues in which one waits.", nil, nil)
)

// collect is a [prometheus.CollectorFunc]. Without an engine there are no metrics.
func (q *Runs) collect(to chan<- prometheus.Metric) {
	e, err := q.use(context.Background(), false)
	if err != nil || e == nil {
		return
	}
	messages, oldest, err := e.Waiting(context.Background())
	if err == nil {
		to <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(messages))
		to <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest.Seconds())
	}
}
