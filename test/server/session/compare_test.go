package session

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// compare lets two functions take turns, and reports their medians and the ratio of these.
func compare(b *testing.B, sdk, server func() error) {
	b.Helper()
	for range 5 { // warm up both
		if err := errors.Join(sdk(), server()); err != nil {
			b.Fatal(err)
		}
	}
	var times [2][]time.Duration
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		for j := range 2 {
			k := (i + j) % 2 // neither always follows the other
			start := time.Now()
			if err := []func() error{sdk, server}[k](); err != nil {
				b.Fatal(err)
			}
			times[k] = append(times[k], time.Since(start))
		}
	}
	own, other := median(times[0]), median(times[1])
	b.ReportMetric(float64(own.Microseconds()), "sdk-µs")
	b.ReportMetric(float64(other.Microseconds()), "server-µs")
	b.ReportMetric(float64(other)/float64(own), "ratio")
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// atOnce calls do several times in each of n goroutines.
func atOnce(n, times int, do func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() {
			var err error
			for range times {
				err = errors.Join(err, do(i))
			}
			errs <- err
		}()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}
