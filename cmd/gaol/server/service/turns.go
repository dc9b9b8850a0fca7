package service

import (
	"context"
	"sync"
)

// maxTurns is how many operations of a kind one tenant has in progress.
const maxTurns = 2

// turns bound the operations of a kind that each tenant has in progress, so that one tenant does not
// use the server's memory or disk for many of them at once. Further ones wait. The zero value is
// ready to use.
type turns struct {
	mu       sync.Mutex
	byTenant map[string]chan struct{}
}

// wait waits for a turn until ctx ends. The caller calls done.
func (q *turns) wait(ctx context.Context, tenant string) (done func(), err error) {
	slots := q.of(tenant)
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (q *turns) of(tenant string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byTenant == nil {
		q.byTenant = map[string]chan struct{}{}
	}
	slots := q.byTenant[tenant]
	if slots == nil {
		slots = make(chan struct{}, maxTurns)
		q.byTenant[tenant] = slots
	}
	return slots
}
