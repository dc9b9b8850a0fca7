package quota

import (
	"context"
	"slices"
	"sync"
	"time"
)

// kind is what a slot is for.
type kind int

const (
	starts  kind = iota // of runs
	creates             // of sandboxes: mostly work of the server itself, which no tenant's cgroup bounds
	kinds
)

// slots are what may be in progress of one kind. Waiting tenants take turns.
type slots struct {
	free, perTenant int
	waiting         []*Account // with something that may start, the next one first
}

// tenantQueue is a tenant's part of the slots.
type tenantQueue struct {
	used  int
	queue []chan struct{} // closed when the run has its slot
}

// wait waits for a slot. The returned function frees it; it is freed earlier after the time most, unless
// that is zero.
func (s *Server) wait(ctx context.Context, a *Account, k kind, most time.Duration) (free func(), err error) {
	if s.noTurns {
		return func() {}, nil
	}
	turn := make(chan struct{})
	s.mu.Lock()
	a = a.current()
	a.slots[k].queue = append(a.slots[k].queue, turn)
	s.enqueue(a, k)
	s.dispatch(k)
	s.mu.Unlock()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-turn:
		free = sync.OnceFunc(func() { s.free(a, k) })
		if most > 0 {
			time.AfterFunc(most, free)
		}
		return free, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = &Exceeded{Limit: "queue", Server: true, RetryAfter: retryAfter}
	}
	s.leave(a, k, turn)
	return nil, err
}

// leave gives up a place in the queue, or the slot that it has led to meanwhile.
func (s *Server) leave(a *Account, k kind, turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(a.slots[k].queue, turn); i >= 0 {
		a.slots[k].queue = slices.Delete(a.slots[k].queue, i, i+1)
		return
	}
	s.release(a, k)
}

func (s *Server) free(a *Account, k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(a, k)
}

// release frees a slot of a tenant.
//
// Preconditions: s.mu is held.
func (s *Server) release(a *Account, k kind) {
	a.slots[k].used--
	s.slots[k].free++
	s.enqueue(a, k)
	s.dispatch(k)
}

// enqueue adds a tenant to those that wait, unless it has nothing to start or all of its slots.
//
// Preconditions: s.mu is held.
func (s *Server) enqueue(a *Account, k kind) {
	if len(a.slots[k].queue) > 0 && a.slots[k].used < s.slots[k].perTenant && !slices.Contains(s.slots[k].waiting, a) {
		s.slots[k].waiting = append(s.slots[k].waiting, a)
	}
}

// dispatch gives free slots to those that wait.
//
// Preconditions: s.mu is held.
func (s *Server) dispatch(k kind) {
	for s.slots[k].free > 0 && len(s.slots[k].waiting) > 0 {
		a := s.slots[k].waiting[0]
		s.slots[k].waiting = s.slots[k].waiting[1:]
		if len(a.slots[k].queue) == 0 { // its runs have been canceled
			continue
		}
		close(a.slots[k].queue[0])
		a.slots[k].queue = a.slots[k].queue[1:]
		a.slots[k].used++
		s.slots[k].free--
		s.enqueue(a, k)
	}
}
