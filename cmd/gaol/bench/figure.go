package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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

	Percentile int         `json:"-"` // of the samples; 0: the median
	Measure    Measurement `json:"-"`
}

// A Measurement takes the samples of a figure, and of its base of comparison. If base is
// empty, bare Node in s is the base.
type Measurement func(ctx context.Context, m *Measurer) (s, base Samples, err error)

// Measured returns f with its results. Values are divided by the values of base, or by the
// value of bare Node in s if base is empty.
func (f Figure) Measured(s, base Samples) Figure {
	p := cmp.Or(f.Percentile, 50)
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
	return f
}

// Figures returns the figures of gaol bench, in the order of the report.
func Figures() []Figure {
	return []Figure{
		{ID: "run-p50", Name: "warm run, p50", Unit: "ms", Measure: runs},
		{ID: "run-p99", Name: "warm run, p99 against p99", Unit: "ms", Percentile: 99, Measure: runs},
		{ID: "throughput-4", Name: "throughput, clients: 4", Unit: "runs/s", Measure: throughput},
		{ID: "create-run-close", Name: "Create + Run + Close", Unit: "ms", Measure: lifecycle},
	}
}

// IDs returns the ids of figures.
func IDs(list []Figure) (ids []string) {
	for _, f := range list {
		ids = append(ids, f.ID)
	}
	return ids
}

// Choose returns the figures that have one of the ids, in their order.
func Choose(list []Figure, ids []string) ([]Figure, error) {
	known := IDs(list)
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, fmt.Errorf("--only: %q is not a valid figure, want some of %s", id, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(f Figure) bool { return !slices.Contains(ids, f.ID) }), nil
}
