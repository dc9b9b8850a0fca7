package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		left := 0
		var s Series
		err := arrivals(t.Context(), 10, &s, func() (func() error, error) {
			time.Sleep(70 * time.Millisecond) // longer than the interval
			return func() error { time.Sleep(time.Second); left++; return nil }, nil
		})
		if err != nil || left != 10 || len(s) != 10 {
			t.Fatalf("%v, %d left, %d samples", err, left, len(s))
		}
		if took := time.Since(began); took != 9*50*time.Millisecond+1070*time.Millisecond {
			t.Errorf("the visits took %v", took)
		}
		if got := s.Percentile(100); got != 70 {
			t.Errorf("the longest wait was %v ms", got)
		}
	})
}

func TestArrivalsEnd(t *testing.T) {
	failure, reason := errors.New("failed"), errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	var s Series
	visits := 0
	err := arrivals(ctx, 1000, &s, func() (func() error, error) {
		visits++
		cancel(reason)
		return nil, failure
	})
	if !errors.Is(err, failure) || !errors.Is(err, reason) || visits != 1 || len(s) != 0 {
		t.Errorf("%v after %d visits and %d samples", err, visits, len(s))
	}
}
