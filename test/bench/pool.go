package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// pooled measures how long a caller waits for a runtime from a pool and a run in it.
// Callers arrive at a steady rate, whether or not the previous one has finished. Closing
// the runtime is not part of the time, but competes with the next callers, as does creating
// the next runtimes. bench.Bare node is started at the same rate.
func (x *fixtures) pooled(ctx context.Context, m *bench.Measurer) (s, _ bench.Samples, failed error) {
	const callers = 40 // in one turn: more than the pool holds, so that it must refill
	pools := map[bench.Side]*runtime.Pool{}
	for _, side := range m.Options.Jailed {
		p, err := runtime.NewPool(m.Create(side), runtime.PoolOptions{Park: side == bench.Zygote}) // only forked runs can be parked
		if err != nil {
			return nil, nil, err
		}
		defer func() { failed = errors.Join(failed, p.Close()) }()
		pools[side] = p
	}
	s = bench.Samples{}
	return s, nil, bench.Turns(ctx, max(1, m.Options.Samples/callers), m.Sides(), func(side bench.Side) error {
		select {
		case <-time.After(time.Second): // the pools refill, which must not slow down the next side
		case <-ctx.Done():
		}
		times, err := arrivals(ctx, min(callers, m.Options.Samples), func() (time.Duration, error) {
			began := time.Now()
			if side == bench.Bare {
				err := m.RunOn(ctx, nil, side, bench.Hello)
				return time.Since(began), err
			}
			rt, err := pools[side].Get(ctx)
			if err != nil {
				return 0, err
			}
			err = bench.Run(ctx, rt, bench.Hello)
			took := time.Since(began)
			return took, errors.Join(err, rt.Close())
		})
		s[side] = append(s[side], times...)
		return err
	})
}

// arrivals starts n visits at 20 a second. It returns the milliseconds that each one
// reports when all have ended.
func arrivals(ctx context.Context, n int, visit func() (time.Duration, error)) ([]float64, error) {
	times, errs := make([]float64, n), make([]error, n)
	var all sync.WaitGroup
	clock := time.NewTicker(bench.Interval)
	defer clock.Stop()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		all.Go(func() {
			took, err := visit()
			times[i], errs[i] = bench.Milliseconds(took), err
		})
		select {
		case <-clock.C:
		case <-ctx.Done():
		}
	}
	all.Wait()
	return times, errors.Join(errors.Join(errs...), context.Cause(ctx))
}
