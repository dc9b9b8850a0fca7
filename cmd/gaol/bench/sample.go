package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Side is what ran a program: bare Node, or a launcher.
type Side string

// The sides. A jailed side is named after its launcher.
const (
	Bare   Side = "bare"
	Exec   Side = "exec"
	Zygote Side = "zygote"
)

// Series is the samples of one measurement, in the unit of its figure.
type Series []float64

// time adds the milliseconds that do takes, if it succeeds.
func (s *Series) time(do func() error) error {
	began := time.Now()
	err := do()
	if err == nil {
		s.add(time.Since(began))
	}
	return err
}

func (s *Series) add(d time.Duration) { *s = append(*s, float64(d)/float64(time.Millisecond)) }

// Percentile returns the smallest sample that at least p percent of all do not exceed,
// or 0 if there are no samples.
func (s Series) Percentile(p int) float64 {
	if len(s) == 0 {
		return 0
	}
	rank := (len(s)*p + 99) / 100
	return slices.Sorted(slices.Values(s))[max(rank, 1)-1]
}

// Samples maps each side to its samples.
type Samples map[Side]*Series

// of returns the samples of one side, to read or to add to.
func (s Samples) of(side Side) *Series {
	if s[side] == nil {
		s[side] = new(Series)
	}
	return s[side]
}

// percentiles returns a percentile of each side.
func (s Samples) percentiles(p int) Values {
	v := Values{}
	for side, series := range s {
		v[side] = series.Percentile(p)
	}
	return v
}

// turns calls do n times for each side, in turns, so that drift of the machine
// affects all sides.
func (m *measurer) turns(ctx context.Context, n int, sides []Side, do func(Side) error) error {
	for range n {
		for _, side := range sides {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := do(side); err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	return nil
}

// times takes n samples of do for each side, in turns.
func (m *measurer) times(ctx context.Context, n int, sides []Side, do func(Side) error) (Samples, error) {
	s := Samples{}
	sample := timed(do)
	err := m.turns(ctx, n, sides, func(side Side) error { return sample(side, s.of(side)) })
	return s, err
}

// sampler takes a sample of a side.
type sampler func(Side, *Series) error

// timed returns a sampler of the time that do takes.
func timed(do func(Side) error) sampler {
	return func(side Side, t *Series) error { return t.time(func() error { return do(side) }) }
}

// pairs takes n samples of two things for each jailed side, in turns.
func (m *measurer) pairs(ctx context.Context, n int, first, second sampler) (a, b Samples, err error) {
	a, b = Samples{}, Samples{}
	err = m.turns(ctx, n, m.jailed(), func(side Side) error {
		if err := second(side, b.of(side)); err != nil {
			return err
		}
		return first(side, a.of(side))
	})
	return a, b, err
}

// values takes n samples of a value for each side, in turns.
func (m *measurer) values(ctx context.Context, n int, do func(Side) (float64, error)) (Samples, error) {
	s := Samples{}
	err := m.turns(ctx, n, m.sides(), func(side Side) error {
		value, err := do(side)
		*s.of(side) = append(*s.of(side), value)
		return err
	})
	return s, err
}
