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

// warmUp fills the page cache and starts the zygotes.
func (m *measurer) warmUp(ctx context.Context) error {
	const rounds = 3
	return m.turns(ctx, rounds, m.sides(), func(side Side) error { return m.runOn(ctx, side, hello) })
}

// runs measures a small program in an existing runtime.
func (m *measurer) runs(ctx context.Context) error {
	s, err := m.times(ctx, m.options.Samples, m.sides(), func(side Side) error { return m.runOn(ctx, side, hello) })
	if err != nil {
		return err
	}
	m.curve("bare node", Bare, s)
	for _, side := range m.jailed() {
		m.curve("run, "+string(side), side, s)
	}
	m.add(againstBare(runMedianID, "warm run, p50", "ms", s.percentiles(50)),
		againstBare(runTailID, "warm run, p99 against p99", "ms", s.percentiles(99)))
	return nil
}

// strictRuns compares runs with all permissions denied to runs with the default
// permissions. They take turns in two runtimes of the same launcher.
func (m *measurer) strictRuns(ctx context.Context) error {
	return m.withRuntimes(ctx, func(o *runtime.Options) { o.Permissions = policy.Strict() }, func(strict runtimes) error {
		with := func(side Side) error { return run(ctx, strict[side], hello) }
		if err := m.turns(ctx, 1, m.jailed(), with); err != nil { // the first run is slower
			return err
		}
		a, b, err := m.pairs(ctx, m.options.Samples, timed(with), timed(func(side Side) error { return m.runOn(ctx, side, hello) }))
		if err == nil {
			m.add(againstOwn(strictID, "warm run, all permissions denied, p50", "ms", a.percentiles(50), b.percentiles(50), "permissions by default"))
		}
		return err
	})
}

// throughput measures the rate of runs with a number of clients. Each starts its next
// run when its last one has ended; all use one runtime.
func (m *measurer) throughput(ctx context.Context) error {
	for _, c := range []struct {
		id      ID
		clients int
	}{{clients1ID, 1}, {clients2ID, 2}, {clients4ID, 4}} {
		rates, err := m.values(ctx, m.options.fewer(20), func(side Side) (float64, error) {
			return rate(c.clients, func() error { return m.runOn(ctx, side, hello) })
		})
		if err != nil {
			return err
		}
		m.add(againstBare(c.id, fmt.Sprintf("throughput, clients: %d", c.clients), "runs/s", rates.percentiles(50)))
	}
	return nil
}

// rate returns how often per second clients complete do. They share one number of
// calls, so that none of them is idle for long at the end.
func rate(clients int, do func() error) (perSecond float64, failed error) {
	calls := int64(8 * clients)
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

// lifecycle measures Create, one run and Close together, and Create alone.
func (m *measurer) lifecycle(ctx context.Context) error {
	created := Samples{}
	all, err := m.times(ctx, m.options.fewer(2), m.sides(), func(side Side) error {
		if side == Bare {
			return m.bare.run(ctx, hello)
		}
		var rt *runtime.NodeRuntime
		err := created.of(side).time(func() (err error) {
			rt, err = runtime.Create(ctx, m.create(side))
			return err
		})
		if err != nil {
			return err
		}
		return errors.Join(run(ctx, rt, hello), rt.Close())
	})
	if err != nil {
		return err
	}
	for _, side := range m.jailed() {
		m.curve("Create + Run + Close, "+string(side), side, all)
	}
	created[Bare] = all[Bare]
	m.add(againstBare(lifecycleID, "Create + Run + Close", "ms", all.percentiles(50)),
		againstBare(createID, "Create", "ms", created.percentiles(50)))
	return nil
}

// overtime measures how long after its timeout the Run of an endless loop returns.
func (m *measurer) overtime(ctx context.Context) error {
	const limit = 150 * time.Millisecond
	s := Samples{}
	err := m.turns(ctx, m.options.fewer(10), m.jailed(), func(side Side) error {
		began := time.Now()
		res, err := m.lasting[side].Run(ctx, "for (;;);", runtime.RunOptions{Timeout: limit})
		if err != nil {
			return err
		}
		if res.Cause != runtime.CauseTimeout {
			return fmt.Errorf("an endless loop ended with cause %q", res.Cause)
		}
		s.of(side).add(time.Since(began) - limit)
		return nil
	})
	if err == nil {
		m.add(alone(overtimeID, "return after a timeout, p50", "ms", s.percentiles(50)))
	}
	return err
}
