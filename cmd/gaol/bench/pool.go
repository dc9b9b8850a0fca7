package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"gaol/runtime"
)

// pooled measures how long a caller waits for a runtime from a pool and a run in it.
// Callers arrive at a steady rate, whether or not the previous one has finished. Closing
// the runtime is not part of the time, but competes with the next callers, as does creating
// the next runtimes. Bare node is started at the same rate.
func (m *measurer) pooled(ctx context.Context) (failed error) {
	pools := map[Side]*runtime.Pool{}
	defer func() {
		for _, p := range pools {
			failed = errors.Join(failed, p.Close())
		}
	}()
	for _, side := range m.jailed() {
		p, err := runtime.NewPool(m.create(side), runtime.PoolOptions{Park: side == Zygote})
		if err != nil {
			return err
		}
		pools[side] = p
	}
	s := Samples{}
	err := m.turns(ctx, max(1, m.options.Samples/callers), m.sides(), func(side Side) error {
		if err := pause(ctx); err != nil {
			return err
		}
		return arrivals(ctx, min(callers, m.options.Samples), s.of(side), func() (leave func() error, err error) {
			if side == Bare {
				return func() error { return nil }, m.bare.run(ctx, hello)
			}
			return fromPool(ctx, pools[side])
		})
	})
	if err != nil {
		return err
	}
	for _, side := range m.jailed() {
		m.curve("Get + Run of a pool, "+string(side), side, s)
	}
	m.add(againstBare(pooledID, "Get + Run of a pool, at 20 a second", "ms", s.percentiles(50)))
	return nil
}

// callers is how many callers arrive in one turn: more than the pool holds, so that it
// must refill.
const callers = 40

// pause gives the pools time to refill, which must not slow down the next side.
func pause(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func fromPool(ctx context.Context, p *runtime.Pool) (leave func() error, err error) {
	rt, err := p.Get(ctx)
	if err != nil {
		return nil, err
	}
	if err := run(ctx, rt, hello); err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	return rt.Close, nil
}

// arrivals starts n visits at 20 a second and takes a sample of each one, without
// leave. It returns when all visits have ended.
func arrivals(ctx context.Context, n int, s *Series, visit func() (leave func() error, err error)) error {
	const interval = time.Second / 20
	var mu sync.Mutex // of s and failed
	var failed error
	var all sync.WaitGroup
	clock := time.NewTicker(interval)
	defer clock.Stop()
	for range n {
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			began := time.Now()
			leave, err := visit()
			took := time.Since(began)
			if err == nil {
				err = leave()
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			s.add(took)
		})
		select {
		case <-clock.C:
		case <-ctx.Done():
		}
	}
	all.Wait()
	return errors.Join(failed, context.Cause(ctx))
}
