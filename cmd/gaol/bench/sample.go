package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Side is a way to run a program: bare Node, a launcher, or an isolation, named as on the command
// line.
type Side string

// The sides that are not isolations.
const (
	Bare   Side = "bare"
	Exec   Side = "exec"
	Zygote Side = "zygote"
)

// Samples are the samples of each side, in the unit of the figure.
type Samples map[Side][]float64

// Add takes a sample of a side.
func (s Samples) Add(side Side, take Sampler) error {
	value, err := take(side)
	if err == nil {
		s[side] = append(s[side], value)
	}
	return err
}

// percentiles returns, for each side, the smallest sample that at least p percent of all
// do not exceed.
func (s Samples) percentiles(p int) Values {
	v := Values{}
	for side, list := range s {
		rank := (len(list)*p + 99) / 100
		v[side] = slices.Sorted(slices.Values(list))[max(rank, 1)-1]
	}
	return v
}

// Sampler takes one sample of a side.
type Sampler func(Side) (float64, error)

// Timed returns a Sampler of the milliseconds that do takes.
func Timed(do func(Side) error) Sampler {
	return func(side Side) (float64, error) {
		began := time.Now()
		err := do(side)
		return Milliseconds(time.Since(began)), err
	}
}

// Milliseconds returns a time in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Sample takes n samples of each side. There is no base.
func Sample(ctx context.Context, n int, sides []Side, take Sampler) (s, base Samples, err error) {
	s = Samples{}
	err = Turns(ctx, n, sides, func(side Side) error { return s.Add(side, take) })
	return s, nil, err
}

// Turns calls do n times for each side, in turns, so that drift of the machine
// affects all sides.
func Turns(ctx context.Context, n int, sides []Side, do func(Side) error) error {
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
