package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		left := 0
		times, err := arrivals(t.Context(), 10, func() (time.Duration, error) {
			time.Sleep(70 * time.Millisecond) // longer than the interval
			time.Sleep(time.Second)
			left++
			return 70 * time.Millisecond, nil
		})
		if err != nil || left != 10 || len(times) != 10 {
			t.Fatalf("%v, %d left, %d samples", err, left, len(times))
		}
		if took := time.Since(began); took != 9*50*time.Millisecond+1070*time.Millisecond {
			t.Errorf("the visits took %v", took)
		}
		if got := slices.Max(times); got != 70 {
			t.Errorf("the longest wait was %v ms", got)
		}
	})
}

func TestArrivalsEnd(t *testing.T) {
	failure, reason := errors.New("failed"), errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	visits := 0
	_, err := arrivals(ctx, 1000, func() (time.Duration, error) {
		visits++
		cancel(reason)
		return 0, failure
	})
	if !errors.Is(err, failure) || !errors.Is(err, reason) || visits != 1 {
		t.Errorf("%v after %d visits", err, visits)
	}
}
