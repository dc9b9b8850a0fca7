package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gaol/cmd/gaol/bench"
	"gaol/policy"
	"gaol/runtime"
)

// consecutiveRuns measures the same without pauses. The first run of a turn, which had a pause, does not count.
func (x *fixtures) consecutiveRuns(ctx context.Context, m *bench.Measurer) (s, _ bench.Samples, err error) {
	const inTurn = 10
	s = bench.Samples{}
	return s, nil, bench.Turns(ctx, m.Options.Fewer(inTurn), m.Sides(), func(side bench.Side) error {
		for i := range 1 + inTurn {
			began := time.Now()
			if err := m.RunOn(ctx, m.Lasting, side, bench.Hello); err != nil {
				return err
			}
			if took := bench.Milliseconds(time.Since(began)); i > 0 {
				s[side] = append(s[side], took)
			}
		}
		return nil
	})
}

// compared takes n samples of each jailed side, and as many of a base, in turns.
func compared(ctx context.Context, n int, m *bench.Measurer, take, compare bench.Sampler) (s, base bench.Samples, err error) {
	s, base = bench.Samples{}, bench.Samples{}
	err = bench.Turns(ctx, n, m.Options.Jailed, func(side bench.Side) error {
		if err := base.Add(side, compare); err != nil {
			return err
		}
		return s.Add(side, take)
	})
	return s, base, err
}

// strictRuns compares runs with all permissions denied to runs with the default
// permissions. They take turns in two runtimes of the same launcher.
func (x *fixtures) strictRuns(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	err = m.WithRuntimes(ctx, func(o *runtime.Options) { o.Permissions = policy.Strict() }, func(strict bench.Runtimes) error {
		with := func(side bench.Side) error { return bench.Run(ctx, strict[side], bench.Hello) }
		if err := bench.Turns(ctx, 1, m.Options.Jailed, with); err != nil { // the first run is slower
			return err
		}
		without := func(side bench.Side) error { return bench.Run(ctx, m.Lasting[side], bench.Hello) }
		s, base, err = compared(ctx, m.Options.Samples, m, bench.Timed(with), bench.Timed(without))
		return err
	})
	return s, base, err
}

// overtime measures how long after its timeout the Run of an endless loop returns.
func (x *fixtures) overtime(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	return bench.Sample(ctx, m.Options.Fewer(10), m.Options.Jailed, func(side bench.Side) (float64, error) {
		const limit = 150 * time.Millisecond
		began := time.Now()
		res, err := m.Lasting[side].Run(ctx, "for (;;);", runtime.RunOptions{Timeout: limit})
		if err == nil && res.Cause != runtime.CauseTimeout {
			err = fmt.Errorf("an endless loop ended with cause %q", res.Cause)
		}
		return bench.Milliseconds(time.Since(began) - limit), err
	})
}

// besideIdle measures a run beside many live runtimes, which run nothing. It measures the
// run without them both before and after, because the machine may change while they are
// created.
func (x *fixtures) besideIdle(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	s, base = bench.Samples{}, bench.Samples{}
	measure := func(s bench.Samples) error {
		return bench.Turns(ctx, m.Options.Fewer(4), m.Options.Jailed, func(side bench.Side) error {
			return s.Add(side, bench.Timed(func(side bench.Side) error { return bench.Run(ctx, m.Lasting[side], bench.Hello) }))
		})
	}
	if err = measure(base); err == nil {
		err = x.amongIdle(ctx, m, x.work(1000), func() error { return measure(s) })
	}
	if err == nil {
		err = measure(base)
	}
	return s, base, err
}

// amongIdle calls do while n runtimes are live.
func (x *fixtures) amongIdle(ctx context.Context, m *bench.Measurer, n int, do func() error) (failed error) {
	for range n {
		rt, err := runtime.Create(ctx, m.Create(m.Options.Jailed[0])) // any launcher: they run nothing
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
	}
	return do()
}
