package main

import "gaol/cmd/gaol/bench"

// bar is the limit for a side of a figure. The bars are gaol's own.
type bar struct {
	Limit float64 `json:"bar"`            // the worst acceptable result
	Goal  float64 `json:"goal,omitempty"` // a better result to aim for

	AtLeast bool `json:"atLeast,omitempty"` // more is better: Limit is the minimum
	OfValue bool `json:"ofValue,omitempty"` // limits the value, not its ratio
}

// met reports whether got meets the bar. NaN does not.
func (b bar) met(got float64) bool {
	if b.AtLeast {
		return got >= b.Limit
	}
	return got <= b.Limit
}

// bars are the bars by side and figure.
var bars = map[bench.Side]map[string]bar{
	bench.Zygote: {
		"run-p50":          {Limit: 0.12, Goal: 0.1},
		"run-p99":          {Limit: 0.25, Goal: 0.2},
		"run-consecutive":  {Limit: 0.16, Goal: 0.12},
		"throughput-4":     {Limit: 6, Goal: 8, AtLeast: true},
		"create-run-close": {Limit: 0.45, Goal: 0.4},
		"pool-get-run":     {Limit: 0.3, Goal: 0.15},
		"idle-memory":      {Limit: 1, Goal: 0.3, OfValue: true},
		"program-memory":   {Limit: 10, Goal: 6, OfValue: true},
		"compute":          {Limit: 1.1, Goal: 1.02},
		"json":             {Limit: 1.1, Goal: 1.02},
		"garbage":          {Limit: 1.1, Goal: 1.02},
		"files":            {Limit: 1.1, Goal: 1.02},
		"stream-callback":  {Limit: 0.7, Goal: 1, AtLeast: true},
		"run-strict":       {Limit: 1.05, Goal: 1},
		"create-snapshot":  {Limit: 1.5, Goal: 1},
		"project-snapshot": {Limit: 1.15, Goal: 1.02},
		"call":             {Limit: 40, Goal: 20, OfValue: true},
		"calls":            {Limit: 50_000, Goal: 100_000, AtLeast: true, OfValue: true},
		"evaluate":         {Limit: 1.2, Goal: 1.05},
		"normalize":        {Limit: 5, Goal: 2, OfValue: true},
		"live-many":        {Limit: 1.2, Goal: 1},
	},
	bench.Exec: {"project-snapshot": {Limit: 1.15, Goal: 1.02}}, // the start of Node does not matter
	"runc":     {"run-p50": {Limit: 2.2, Goal: 2}, "create-run-close": {Limit: 4, Goal: 3}},
	"gvisor":   {"run-p50": {Limit: 0.6, Goal: 0.3}, "create-run-close": {Limit: 14, Goal: 7}},
}

// verdict is whether a side of a figure meets its bar.
type verdict struct {
	bar
	Figure string     `json:"figure"`
	Side   bench.Side `json:"side"`
	Met    bool       `json:"met"`
}

// judge returns the verdict for a side of a figure, if that has a bar and a result.
func judge(f bench.Figure, side bench.Side) (v verdict, ok bool) {
	b, ok := bars[side][f.ID]
	limited := f.Ratio
	if b.OfValue {
		limited = f.Values
	}
	got, measured := limited[side]
	return verdict{b, f.ID, side, b.met(got)}, ok && measured
}

// note returns the verdict as text: the bar, with the unit if it limits the value, the
// goal, and whether the bar is met.
func note(f bench.Figure, side bench.Side) string {
	v, ok := judge(f, side)
	if !ok {
		return ""
	}
	limit, unit, result := "<= ", "", "OVER"
	if v.AtLeast {
		limit = ">= "
	}
	if v.OfValue {
		unit = " " + f.Unit
	}
	if v.Met {
		result = "ok"
	}
	return result + "  bar " + limit + bench.Short(v.Limit) + unit + ", goal " + bench.Short(v.Goal)
}
