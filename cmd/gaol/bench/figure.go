package bench

import (
	"cmp"
	"context"
)

// Values are the values of one figure, by side.
type Values map[Side]float64

// Figure is one thing that is measured. Tools may rely on ID, which stays when Name
// changes.
type Figure struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Unit   string `json:"unit"` // of Values
	Values Values `json:"values"`

	// Ratio is the value of each jailed side divided by what Against names, which
	// was measured in turns with it. Empty: the figure is compared with nothing.
	Ratio   Values `json:"ratio,omitempty"`
	Against string `json:"against,omitempty"`

	*Bar       // nil: the figure is only informative
	Met  *bool `json:"met,omitempty"` // nil: no bar, or no value of the sides that it limits

	percentile int // of the samples; 0: the median
	measure    measurement
}

// Bar is the limit for the zygote's side of a figure, for both launchers, or for an isolation.
// The bars are gaol's own.
type Bar struct {
	Limit float64 `json:"bar"`            // the worst acceptable result
	Goal  float64 `json:"goal,omitempty"` // a better result to aim for

	AtLeast bool `json:"atLeast,omitempty"` // more is better: Limit is the minimum
	OfValue bool `json:"ofValue,omitempty"` // limits the value, not its ratio
	Both    bool `json:"both,omitempty"`    // also for LauncherExec: the start of Node does not matter
	For     Side `json:"for,omitempty"`     // the isolation, instead of the zygote
}

// measured returns f with its results. Values are divided by those of base, or by that of
// bare Node in s if base is empty.
func (f Figure) measured(s, base Samples) Figure {
	p := cmp.Or(f.percentile, 50)
	f.Values, f.Ratio = s.percentiles(p), Values{}
	compared := base.percentiles(p)
	if bare, ok := f.Values[Bare]; ok && len(base) == 0 {
		f.Against = cmp.Or(f.Against, "bare node")
		for side := range f.Values {
			compared[side] = bare
		}
	}
	for side, against := range compared {
		if value, ok := f.Values[side]; ok && side != Bare {
			f.Ratio[side] = value / against
		}
	}
	return f.judged()
}

// judged returns f with Met.
func (f Figure) judged() Figure {
	if f.Bar == nil {
		return f
	}
	limited := f.Ratio
	if f.OfValue {
		limited = f.Values
	}
	for side, got := range limited {
		if side == cmp.Or(f.For, Zygote) || f.Both && side == Exec {
			met := f.met(got) && (f.Met == nil || *f.Met)
			f.Met = &met
		}
	}
	return f
}

// met reports whether got meets the bar. NaN does not.
func (b Bar) met(got float64) bool {
	if b.AtLeast {
		return got >= b.Limit
	}
	return got <= b.Limit
}

// A measurement takes the samples of a figure, and of what it is compared with. If base
// is empty, that is bare Node in s.
type measurement func(*measurer, context.Context) (s, base Samples, err error)

// figures are all figures, in the order of the report: those with a bar first.
// Programs that do something with their files, such as project, do not pay what the
// file-heavy one pays on a snapshot, overlayfs's own cost of a call. So that has no bar.
var figures = []Figure{
	{ID: "run-p50", Name: "warm run, p50", Unit: "ms",
		Bar: &Bar{Limit: 0.12, Goal: 0.1}, measure: (*measurer).runs},
	{ID: "run-p99", Name: "warm run, p99 against p99", Unit: "ms", percentile: 99,
		Bar: &Bar{Limit: 0.25, Goal: 0.2}, measure: (*measurer).runs},
	{ID: "run-consecutive", Name: "warm run right after another, p50", Unit: "ms",
		Bar: &Bar{Limit: 0.16, Goal: 0.12}, measure: (*measurer).consecutiveRuns},
	{ID: "throughput-4", Name: "throughput, clients: 4", Unit: "runs/s",
		Bar: &Bar{Limit: 6, Goal: 8, AtLeast: true}, measure: (*measurer).throughput},
	{ID: "create-run-close", Name: "Create + Run + Close", Unit: "ms",
		Bar: &Bar{Limit: 0.45, Goal: 0.4}, measure: (*measurer).lifecycle},
	{ID: "pool-get-run", Name: "Get + Run of a pool, at 20 a second", Unit: "ms",
		Bar: &Bar{Limit: 0.3, Goal: 0.15}, measure: (*measurer).pooled},
	{ID: "idle-memory", Name: "memory of an idle runtime, PSS", Unit: "MB",
		Bar: &Bar{Limit: 1, Goal: 0.3, OfValue: true}, measure: (*measurer).idleMemory},
	{ID: "program-memory", Name: "memory of one more running program, private", Unit: "MB",
		Bar: &Bar{Limit: 10, Goal: 6, OfValue: true}, measure: (*measurer).programMemory},
	{ID: "compute", Name: "compute-bound program", Unit: "ms",
		Bar: &Bar{Limit: 1.1, Goal: 1.02}, measure: whole(program{name: "compute", rounds: 2000})},
	{ID: "json", Name: "JSON program", Unit: "ms",
		Bar: &Bar{Limit: 1.1, Goal: 1.02}, measure: whole(program{name: "json", rounds: 450})},
	{ID: "garbage", Name: "GC-heavy program", Unit: "ms",
		Bar: &Bar{Limit: 1.1, Goal: 1.02}, measure: whole(program{name: "garbage", rounds: 640})},
	{ID: "files", Name: "file-heavy program", Unit: "ms",
		Bar: &Bar{Limit: 1.1, Goal: 1.02}, measure: whole(program{name: "files", rounds: 160})},
	{ID: "stream-callback", Name: "1 GiB of output by OnStdout, against node | cat", Unit: "MB/s",
		Bar: &Bar{Limit: 0.7, Goal: 1, AtLeast: true}, measure: (*measurer).streamed},
	{ID: "run-strict", Name: "warm run, all permissions denied, against default ones, p50", Unit: "ms", Against: "permissions by default",
		Bar: &Bar{Limit: 1.05, Goal: 1}, measure: (*measurer).strictRuns},
	{ID: "create-snapshot", Name: "Create with a snapshot of 30,000 small files, against none, p50", Unit: "ms", Against: "Create without",
		Bar: &Bar{Limit: 1.5, Goal: 1}, measure: (*measurer).createOnSnapshot},
	{ID: "project-snapshot", Name: "a project's file work, on a snapshot", Unit: "ms",
		Bar: &Bar{Limit: 1.15, Goal: 1.02, Both: true}, measure: whole(program{name: "project", rounds: 60, onSnapshot: true})},
	{ID: "call", Name: "call of a host function, against HTTP, p50", Unit: "µs", Against: "HTTP over loopback by bare node",
		Bar: &Bar{Limit: 40, Goal: 20, OfValue: true}, measure: called(func(t callTimes) float64 { return t.Median })},
	{ID: "calls", Name: "calls of a host function at once, against HTTP", Unit: "calls/s", Against: "HTTP over loopback by bare node",
		Bar: &Bar{Limit: 50_000, Goal: 100_000, AtLeast: true, OfValue: true}, measure: called(func(t callTimes) float64 { return t.Rate })},
	{ID: "evaluate", Name: "Evaluate, against Run of the same, p50", Unit: "ms", Against: "Run of the same",
		Bar: &Bar{Limit: 1.2, Goal: 1.05}, measure: (*measurer).evaluations},
	{ID: "normalize", Name: "Normalize of 20 KB of TypeScript, p50", Unit: "ms",
		Bar: &Bar{Limit: 5, Goal: 2, OfValue: true}, measure: (*measurer).normalizations},
	{ID: "live-many", Name: "warm run beside 1,000 idle runtimes, against none, p50", Unit: "ms", Against: "the same without them",
		Bar: &Bar{Limit: 1.2, Goal: 1}, measure: (*measurer).besideIdle},
	{ID: "files-snapshot", Name: "file calls alone, on a snapshot", Unit: "ms",
		measure: whole(program{name: "files", rounds: 160, onSnapshot: true})},
	{ID: "overtime", Name: "return after a timeout, p50", Unit: "ms",
		measure: (*measurer).overtime},
}

// IDs returns the ids of all figures, in their order.
func IDs() (ids []string) {
	for _, f := range figures {
		ids = append(ids, f.ID)
	}
	return ids
}
