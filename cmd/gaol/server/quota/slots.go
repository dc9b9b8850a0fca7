package quota

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots are the starts that may be in progress. Waiting tenants take turns.
type slots struct {
	free, perTenant int
	waiting         []*Account // with a run that may start, the next one first
}

// tenantQueue is a tenant's part of the slots.
type tenantQueue struct {
	used  int
	queue []chan struct{} // closed when the run has its slot
}

// wait waits for a slot. The returned function frees it; it is freed earlier after startTime.
func (s *Server) wait(ctx context.Context, a *Account) (free func(), err error) {
	turn := make(chan struct{})
	s.mu.Lock()
	a = a.current()
	a.slots.queue = append(a.slots.queue, turn)
	s.enqueue(a)
	s.dispatch()
	s.mu.Unlock()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-turn:
		free = sync.OnceFunc(func() { s.free(a) })
		time.AfterFunc(startTime, free)
		return free, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = &Exceeded{Limit: "queue", Server: true, RetryAfter: retryAfter}
	}
	s.leave(a, turn)
	return nil, err
}

// leave gives up a place in the queue, or the slot that it has led to meanwhile.
func (s *Server) leave(a *Account, turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(a.slots.queue, turn); i >= 0 {
		a.slots.queue = slices.Delete(a.slots.queue, i, i+1)
		return
	}
	s.release(a)
}

func (s *Server) free(a *Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(a)
}

// release frees a slot of a tenant.
//
// Preconditions: s.mu is held.
func (s *Server) release(a *Account) {
	a.slots.used--
	s.slots.free++
	s.enqueue(a)
	s.dispatch()
}

// enqueue adds a tenant to those that wait, unless it has nothing to start or all of its slots.
//
// Preconditions: s.mu is held.
func (s *Server) enqueue(a *Account) {
	if len(a.slots.queue) > 0 && a.slots.used < s.slots.perTenant && !slices.Contains(s.slots.waiting, a) {
		s.slots.waiting = append(s.slots.waiting, a)
	}
}

// dispatch gives free slots to those that wait.
//
// Preconditions: s.mu is held.
func (s *Server) dispatch() {
	for s.slots.free > 0 && len(s.slots.waiting) > 0 {
		a := s.slots.waiting[0]
		s.slots.waiting = s.slots.waiting[1:]
		if len(a.slots.queue) == 0 { // its runs have been canceled
			continue
		}
		close(a.slots.queue[0])
		a.slots.queue = a.slots.queue[1:]
		a.slots.used++
		s.slots.free--
		s.enqueue(a)
	}
}
