package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gaol/policy"
	"gaol/runtime"
)

// interval is the time between the starts of two runs that are made after a pause.
const interval = time.Second / 20

// runs measures a small program in an existing runtime, once for all figures about it. Each run
// begins an interval after the one before.
func (m *measurer) runs(ctx context.Context) (s, _ Samples, err error) {
	if m.warm == nil {
		m.warm, _, err = sample(ctx, m.options.Samples, m.sides(), func(side Side) (float64, error) {
			began := time.Now()
			err := m.runOn(ctx, m.lasting, side, hello)
			took := time.Since(began)
			select {
			case <-time.After(interval - took):
			case <-ctx.Done():
			}
			return milliseconds(took), err
		}, nil)
	}
	return m.warm, nil, err
}

// consecutiveRuns measures the same without pauses. The first run of a turn, which had a pause, does not count.
func (m *measurer) consecutiveRuns(ctx context.Context) (s, _ Samples, err error) {
	const inTurn = 10
	s = Samples{}
	return s, nil, turns(ctx, m.options.fewer(inTurn), m.sides(), func(side Side) error {
		for i := range 1 + inTurn {
			began := time.Now()
			if err := m.runOn(ctx, m.lasting, side, hello); err != nil {
				return err
			}
			if took := milliseconds(time.Since(began)); i > 0 {
				s[side] = append(s[side], took)
			}
		}
		return nil
	})
}

// strictRuns compares runs with all permissions denied to runs with the default
// permissions. They take turns in two runtimes of the same launcher.
func (m *measurer) strictRuns(ctx context.Context) (s, base Samples, err error) {
	err = m.withRuntimes(ctx, func(o *runtime.Options) { o.Permissions = policy.Strict() }, func(strict runtimes) error {
		with := func(side Side) error { return run(ctx, strict[side], hello) }
		if err := turns(ctx, 1, m.options.Jailed, with); err != nil { // the first run is slower
			return err
		}
		without := func(side Side) error { return run(ctx, m.lasting[side], hello) }
		s, base, err = sample(ctx, m.options.Samples, m.options.Jailed, timed(with), timed(without))
		return err
	})
	return s, base, err
}

// throughput measures the rate of runs of four clients. Each starts its next run when its
// last one has ended; all use one runtime.
func (m *measurer) throughput(ctx context.Context) (s, base Samples, err error) {
	return sample(ctx, m.options.fewer(20), m.sides(), func(side Side) (float64, error) {
		return rate(4, func() error { return m.runOn(ctx, m.lasting, side, hello) })
	}, nil)
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
func (m *measurer) lifecycle(ctx context.Context) (s, base Samples, err error) {
	return sample(ctx, m.options.fewer(2), m.sides(), timed(func(side Side) error {
		if side == Bare {
			return m.runOn(ctx, nil, side, hello)
		}
		rt, err := runtime.Create(ctx, m.create(side))
		if err != nil {
			return err
		}
		return errors.Join(run(ctx, rt, hello), rt.Close())
	}), nil)
}

// overtime measures how long after its timeout the Run of an endless loop returns.
func (m *measurer) overtime(ctx context.Context) (s, base Samples, err error) {
	return sample(ctx, m.options.fewer(10), m.options.Jailed, func(side Side) (float64, error) {
		const limit = 150 * time.Millisecond
		began := time.Now()
		res, err := m.lasting[side].Run(ctx, "for (;;);", runtime.RunOptions{Timeout: limit})
		if err == nil && res.Cause != runtime.CauseTimeout {
			err = fmt.Errorf("an endless loop ended with cause %q", res.Cause)
		}
		return milliseconds(time.Since(began) - limit), err
	}, nil)
}

// besideIdle measures a run beside many live runtimes, which run nothing. It measures the
// run without them both before and after, because the machine may change while they are
// created.
func (m *measurer) besideIdle(ctx context.Context) (s, base Samples, err error) {
	s, base = Samples{}, Samples{}
	measure := func(s Samples) error {
		return turns(ctx, m.options.fewer(4), m.options.Jailed, func(side Side) error {
			return s.add(side, timed(func(side Side) error { return run(ctx, m.lasting[side], hello) }))
		})
	}
	if err = measure(base); err == nil {
		err = m.amongIdle(ctx, m.options.work(1000), func() error { return measure(s) })
	}
	if err == nil {
		err = measure(base)
	}
	return s, base, err
}

// amongIdle calls do while n runtimes are live.
func (m *measurer) amongIdle(ctx context.Context, n int, do func() error) (failed error) {
	for range n {
		rt, err := runtime.Create(ctx, m.create(m.options.Jailed[0])) // any launcher: they run nothing
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
	}
	return do()
}
