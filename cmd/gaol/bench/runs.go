package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gaol/runtime"
)

// Interval is the time between the starts of two runs that are made after a pause.
const Interval = time.Second / 20

// runs measures a small program in an existing runtime, once for all figures about it. Each run
// begins an interval after the one before.
func runs(ctx context.Context, m *Measurer) (s, _ Samples, err error) {
	if m.warm == nil {
		m.warm, _, err = Sample(ctx, m.Options.Samples, m.Sides(), func(side Side) (float64, error) {
			began := time.Now()
			err := m.RunOn(ctx, m.Lasting, side, Hello)
			took := time.Since(began)
			select {
			case <-time.After(Interval - took):
			case <-ctx.Done():
			}
			return Milliseconds(took), err
		})
	}
	return m.warm, nil, err
}

// throughput measures the rate of runs of four clients. Each starts its next run when its
// last one has ended; all use one runtime.
func throughput(ctx context.Context, m *Measurer) (s, base Samples, err error) {
	return Sample(ctx, m.Options.Fewer(20), m.Sides(), func(side Side) (float64, error) {
		return rate(4, func() error { return m.RunOn(ctx, m.Lasting, side, Hello) })
	})
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
func lifecycle(ctx context.Context, m *Measurer) (s, base Samples, err error) {
	return Sample(ctx, m.Options.Fewer(2), m.Sides(), Timed(func(side Side) error {
		if side == Bare {
			return m.RunOn(ctx, nil, side, Hello)
		}
		rt, err := runtime.Create(ctx, m.Create(side))
		if err != nil {
			return err
		}
		return errors.Join(Run(ctx, rt, Hello), rt.Close())
	}))
}
