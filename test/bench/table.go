package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// bar is the most that the median of a later run may be, in medians of bare node.
const bar = 3.0

// row is one line of times.
type row struct {
	name  string // as metrics are called
	times Times
	bar   float64 // 0: none
}

func (r *Report) rows() []row {
	return []row{
		{"bare", r.Bare, 0},
		{"create", r.Create, 0},
		{"first-run", r.FirstRun, 0},
		{"run", r.LaterRun, bar},
		{"close", r.Close, 0},
		{"create+run+close", r.Whole, 0},
		{"overtime", r.Overtime, 0},
	}
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tsamples\tp50 ms\tp95 ms\tp50 / bare\tp95 / bare\tbar on p50\t")
	for _, row := range r.rows() {
		p50, p95 := row.times.Percentile(50), row.times.Percentile(95)
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.2f\t%.2f\t%s\t\n", row.name, len(row.times), milliseconds(p50), milliseconds(p95),
			r.Ratio(row.times, 50), r.Ratio(row.times, 95), verdict(r.Ratio(row.times, 50), row.bar))
	}
	fmt.Fprintln(t, "\t\t\t\t\t\t\t\n\tslices\truns/s\tbare/s\truns / bare\t\t\t")
	for _, c := range r.Clients {
		fmt.Fprintf(t, "clients=%d\t%d\t%.1f\t%.1f\t%.2f\t\t\t\n", c.Clients, len(c.Runs), c.Runs.Median(), c.Bare.Median(), c.Ratio())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nan idle runtime: %d processes, PSS %d KiB\n", r.Idle.Processes, r.Idle.PSS>>10)
	return err
}

// verdict says how a ratio compares with its bar.
func verdict(ratio, bar float64) string {
	switch {
	case bar == 0:
		return ""
	case ratio <= bar:
		return fmt.Sprintf("≤ %.1f: met", bar)
	}
	return fmt.Sprintf("≤ %.1f: MISSED", bar)
}

// Metrics calls report with each figure and its unit, as the benchmark format of
// Go wants them: benchstat scales what ends in -ns.
func (r *Report) Metrics(report func(value float64, unit string)) {
	for _, row := range r.rows() {
		report(float64(row.times.Percentile(50)), row.name+"-p50-ns")
		report(float64(row.times.Percentile(95)), row.name+"-p95-ns")
		report(r.Ratio(row.times, 50), row.name+"-p50/bare")
		report(r.Ratio(row.times, 95), row.name+"-p95/bare")
	}
	for _, c := range r.Clients {
		name := fmt.Sprintf("clients%d", c.Clients)
		report(c.Runs.Median(), name+"-runs/s")
		report(c.Ratio(), name+"-runs/bare")
	}
	report(float64(r.Idle.PSS), "idle-PSS-bytes")
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
