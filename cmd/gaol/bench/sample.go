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

// percentile picks by nearest rank.
func percentile[E cmp.Ordered](s []E, p int) E {
	if len(s) == 0 {
		var none E
		return none
	}
	rank := (len(s)*p + 99) / 100
	return slices.Sorted(slices.Values(s))[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Side is who ran a program.
type Side string

// The sides. A jail's is named as its launcher.
const (
	Bare   Side = "bare"
	Exec   Side = "exec"
	Zygote Side = "zygote"
)

// Samples are the times of each side.
type Samples map[Side]*Times

// of gives one side's samples, to read or to add to.
func (s Samples) of(side Side) *Times {
	if s[side] == nil {
		s[side] = new(Times)
	}
	return s[side]
}

// percentiles gives each side's, in milliseconds.
func (s Samples) percentiles(p int) Values {
	v := Values{}
	for side, times := range s {
		v[side] = milliseconds(times.Percentile(p))
	}
	return v
}
