package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// throughput measures what a number of clients get done at once. Each starts its
// next run when its last one has ended; all use one runtime.
func (m *measurer) throughput(ctx context.Context) error {
	for _, c := range []struct {
		id      ID
		clients int
	}{{clients1ID, 1}, {clients2ID, 2}, {clients4ID, 4}} {
		rates := map[Side][]float64{}
		err := m.turns(ctx, m.options.fewer(20), func(side Side) error {
			rate, err := slice(c.clients, func() error { return m.runOn(ctx, side, hello) })
			rates[side] = append(rates[side], rate)
			return err
		})
		if err != nil {
			return err
		}
		medians := Values{}
		for side, r := range rates {
			medians[side] = percentile(r, 50)
		}
		m.add(againstBare(c.id, fmt.Sprintf("throughput, clients: %d", c.clients), "runs/s", medians))
	}
	return nil
}

// slice is the rate at which clients get do done. They share one number of turns,
// so that none is idle for long at the end.
func slice(clients int, do func() error) (perSecond float64, failed error) {
	turns := int64(8 * clients)
	var taken atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, clients)
	began := time.Now()
	for i := range clients {
		all.Go(func() {
			for errs[i] == nil && taken.Add(1) <= turns {
				errs[i] = do()
			}
		})
	}
	all.Wait()
	return float64(turns) / time.Since(began).Seconds(), errors.Join(errs...)
}
