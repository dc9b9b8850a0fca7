package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"gaol/cmd/gaol/server/quota"
)

// Usage collects what tenants use at the time of a scrape.
type Usage struct {
	// Tenants returns the names that are labels of their own, and what each tenant uses.
	Tenants func() (named []string, all []quota.Usage)
}

// other is the label of all tenants that the settings do not name.
const other = "other"

// gauges are the metrics of a [Usage].
var gauges = []struct {
	desc  *prometheus.Desc
	value func(quota.Usage) float64
}{
	{gauge("gaol_sandboxes", "Sandboxes."), func(u quota.Usage) float64 { return float64(u.Sandboxes) }},
	{gauge("gaol_runs", "Active runs, processes and contexts, and those that wait for their turn."), func(u quota.Usage) float64 { return float64(u.Runs) }},
	{gauge("gaol_reserved_memory_bytes", "Memory limits of active runs together."), func(u quota.Usage) float64 { return float64(u.Memory) }},
	{gauge("gaol_reserved_disk_bytes", "Disk limits of sandboxes together."), func(u quota.Usage) float64 { return float64(u.Disk) }},
	{gauge("gaol_egress_connections", "Connections of guests to hosts outside."), func(u quota.Usage) float64 { return float64(u.EgressConnections) }},
	{gauge("gaol_reserved_cpus", "Processor limits of active runs together."), func(u quota.Usage) float64 { return u.CPUs }},
}

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help+" By tenants that the settings name; other is all others together.", []string{"tenant"}, nil)
}

// Describe implements [prometheus.Collector].
func (u *Usage) Describe(to chan<- *prometheus.Desc) {
	for _, g := range gauges {
		to <- g.desc
	}
}

// Collect implements [prometheus.Collector].
func (u *Usage) Collect(to chan<- prometheus.Metric) {
	named, all := u.Tenants()
	sums := map[string]quota.Usage{other: {}}
	for _, name := range named {
		sums[name] = quota.Usage{}
	}
	for _, one := range all {
		name := one.Tenant
		if _, known := sums[name]; !known {
			name = other
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
