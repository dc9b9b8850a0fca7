package fleet

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
)

// metrics count the forwarded requests and the moves of a node.
type metrics struct {
	forwards *prometheus.CounterVec
	seconds  prometheus.Histogram
	moves    prometheus.Counter
	canary   prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		forwards: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gaol_fleet_forwards_total", Help: "Requests that were forwarded to another node, by node and status.",
		}, []string{"to", "status"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gaol_fleet_forward_seconds", Help: "Time until the response of another node began.", Buckets: service.Seconds,
		}),
		moves:  prometheus.NewCounter(prometheus.CounterOpts{Name: "gaol_fleet_moves_total", Help: "Sandboxes that this node has given to another."}),
		canary: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gaol_fleet_canary_seconds", Help: "Time of the last write that checks this node's engine."}),
	}
}

// forwarded counts a request that was forwarded.
func (m *metrics) forwarded(node string, status int, begin time.Time) {
	label := strconv.Itoa(status)
	if http.StatusText(status) == "" { // of a guest's server, which could use hundreds
		label = "other"
	}
	m.forwards.WithLabelValues(node, label).Inc()
	m.seconds.Observe(time.Since(begin).Seconds())
}

var (
	nodesDesc  = prometheus.NewDesc("gaol_fleet_nodes", "Nodes, by their state as this one sees it.", []string{"state"}, nil)
	engineDesc = prometheus.NewDesc("gaol_fleet_engine_up", "1 if this node is connected to the engine.", nil, nil)
)

// collect is a [prometheus.CollectorFunc].
func (f *Fleet) collect(to chan<- prometheus.Metric) {
	states := map[member.State]float64{member.Live: 0, member.Draining: 0, member.Suspect: 0, member.Dead: 0}
	for _, n := range f.Member().All() {
		if states[n.State]++; n.State == member.Dead {
			f.metrics.forwards.DeletePartialMatch(prometheus.Labels{"to": n.ID})
		}
	}
	for state, n := range states {
		to <- prometheus.MustNewConstMetric(nodesDesc, prometheus.GaugeValue, n, string(state))
	}
	up := 0.0
	if f.client.Connected() {
		up = 1
	}
	to <- prometheus.MustNewConstMetric(engineDesc, prometheus.GaugeValue, up)
	for _, c := range []prometheus.Collector{f.metrics.forwards, f.metrics.seconds, f.metrics.moves, f.metrics.canary} {
		c.Collect(to)
	}
}

// target is an element of Prometheus's HTTP service discovery.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// serveTargets lists the addresses of the HTTP API of all nodes that serve it by TCP.
func (f *Fleet) serveTargets(w http.ResponseWriter, _ *http.Request) {
	list := []target{}
	for _, n := range f.Member().All() {
		host, _, err := net.SplitHostPort(n.Address)
		if err == nil && n.Port != "" {
			list = append(list, target{[]string{net.JoinHostPort(host, n.Port)}, map[string]string{"node": n.ID, "version": n.Version}})
		}
	}
	respond(w, list, nil)
}
