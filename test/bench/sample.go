package bench

import (
	"cmp"
	"slices"
	"time"
)

// Times are samples of how long one thing took.
type Times []time.Duration

// time adds how long do takes, if it succeeds.
func (t *Times) time(do func() error) error {
	began := time.Now()
	err := do()
	if err == nil {
		*t = append(*t, time.Since(began))
	}
	return err
}

// Percentile returns the sample that p percent of all are no longer than, or 0
// if there are none.
func (t Times) Percentile(p int) time.Duration {
	return percentile(t, p)
}

// Rates are samples of how many things were done in a second.
type Rates []float64

// Median returns the middle sample, or 0 if there are none.
func (r Rates) Median() float64 {
	return percentile(r, 50)
}

// percentile picks by nearest rank.
func percentile[E cmp.Ordered](s []E, p int) E {
	if len(s) == 0 {
		var none E
		return none
	}
	rank := (len(s)*p + 99) / 100
	return slices.Sorted(slices.Values(s))[max(rank, 1)-1]
}
