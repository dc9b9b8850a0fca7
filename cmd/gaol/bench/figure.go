package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gaol/runtime"
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

// Interval is the time between the starts of two runs that are made after a pause.
const Interval = time.Second / 20

// runs measures a small program in an existing runtime, once for all figures about it. Each run
// begins an interval after the one before.
func runs(ctx context.Context, m *Measurer) (s, _ Samples, err error) {
	if m.warm == nil {
		m.warm, _, err = Sample(ctx, m.Options.Samples, m.Sides(), func(side Side) (float64, error) {
			began := time.Now()
			err := m.RunOn(ctx, m.Lasting, side, Hello)
			took := time.Since(began)
			select {
			case <-time.After(Interval - took):
			case <-ctx.Done():
			}
			return Milliseconds(took), err
		})
	}
	return m.warm, nil, err
}

// throughput measures the rate of runs of four clients. Each starts its next run when its
// last one has ended; all use one runtime.
func throughput(ctx context.Context, m *Measurer) (s, base Samples, err error) {
	return Sample(ctx, m.Options.Fewer(20), m.Sides(), func(side Side) (float64, error) {
		return rate(4, func() error { return m.RunOn(ctx, m.Lasting, side, Hello) })
	})
}

// rate returns how often per second clients complete do. They share one number of
// calls, so that none of them is idle for long at the end.
func rate(clients int, do func() error) (perSecond float64, failed error) {
	calls := int64(8 * clients) // some tenths of a second: short enough for many turns
	var started atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, clients)
	began := time.Now()
	for i := range clients {
		all.Go(func() {
			for errs[i] == nil && started.Add(1) <= calls {
				errs[i] = do()
			}
		})
	}
	all.Wait()
	return float64(calls) / time.Since(began).Seconds(), errors.Join(errs...)
}

// lifecycle measures Create, one run and Close together.
func lifecycle(ctx context.Context, m *Measurer) (s, base Samples, err error) {
	return Sample(ctx, m.Options.Fewer(2), m.Sides(), Timed(func(side Side) error {
		if side == Bare {
			return m.RunOn(ctx, nil, side, Hello)
		}
		rt, err := runtime.Create(ctx, m.Create(side))
		if err != nil {
			return err
		}
		return errors.Join(Run(ctx, rt, Hello), rt.Close())
	}))
}
