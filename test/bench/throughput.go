package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// clientCounts are the numbers of clients that throughput is measured with.
var clientCounts = []int{1, 2, 4}

// Throughput is what a number of clients get done at once. Each starts its next
// run when its last one has ended; all use one runtime.
type Throughput struct {
	Clients int
	Runs    Rates // of the runtime
	Bare    Rates // of bare node
}

// Ratio says how many times as much as bare node gets done.
func (t *Throughput) Ratio() float64 { return t.Runs.Median() / t.Bare.Median() }

// throughput lets bare node and the runtime take turns, at each number of clients.
func (m *measurer) throughput(ctx context.Context) error {
	for _, n := range clientCounts {
		t := Throughput{Clients: n}
		for range m.options.slices() {
			if err := t.Bare.slice(n, func() error { return m.bare.run(ctx) }); err != nil {
				return err
			}
			if err := t.Runs.slice(n, func() error { return run(ctx, m.lasting) }); err != nil {
				return err
			}
		}
		m.report.Clients = append(m.report.Clients, t)
	}
	return nil
}

// slice adds the rate at which clients get do done. They share one number of
// turns, so that none is idle for long at the end.
func (r *Rates) slice(clients int, do func() error) error {
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
	*r = append(*r, float64(turns)/time.Since(began).Seconds())
	return errors.Join(errs...)
}
