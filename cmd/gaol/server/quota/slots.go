package quota

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Kind is the purpose of a slot.
type Kind int

// The kinds. The connections and look-ups of guests are limited by [Limits], too.
const (
	Starts   Kind = iota // of runs
	Creates              // of sandboxes: mostly work of the server itself, which no tenant's cgroup bounds
	Connects             // to external hosts
	Lookups              // of names for guests
	Texts                // of JSON that are large, while they arrive: they are work of the server itself, too
	Listings             // that hold much in memory
	Copies               // of the files of sandboxes to snapshots
	kinds
)

// waits are how long a slot of each kind is waited for, the name of the limit then, and how long it is occupied at
// most; zero: until it is freed. A run that takes longer competes for processors by its tenant's cgroup. Resolvers in
// guests give up after five seconds.
var waits = [kinds]struct {
	limit      string
	wait, most time.Duration
}{
	Starts:   {"queue", 10 * time.Second, 250 * time.Millisecond},
	Creates:  {"queue", 10 * time.Second, 0},
	Connects: {"pendingConnects", 10 * time.Second, 0},
	Lookups:  {"pendingLookups", 3 * time.Second, 0},
	Texts:    {"queue", 10 * time.Second, 250 * time.Millisecond},
	Listings: {"queue", time.Minute, 0},
	Copies:   {"queue", 10 * time.Minute, 0},
}

// slots are what may be in progress of one kind. Waiting tenants take turns.
type slots struct {
	free, perTenant int        // perTenant is unused for kinds with a limit
	waiting         []*Account // with something that may start, the next one first
}

// tenantQueue is a tenant's part of the slots.
type tenantQueue struct {
	used  int
	queue []chan struct{} // closed when the run has its slot
}

// wait waits for a slot. The returned function frees it, unless that has happened before.
func (s *Server) wait(ctx context.Context, a *Account, k Kind) (free func(), err error) {
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
	late := time.NewTimer(waits[k].wait)
	defer late.Stop()
	select {
	case <-turn:
		free = sync.OnceFunc(func() { s.free(a, k) })
		if most := waits[k].most; most > 0 {
			time.AfterFunc(most, free)
		}
		return free, nil
	case <-ctx.Done():
		s.leave(a, k, turn)
		return nil, context.Cause(ctx)
	case <-late.C:
		return nil, &Exceeded{Limit: waits[k].limit, Server: !s.leave(a, k, turn), RetryAfter: retryAfter}
	}
}

// leave gives up a place in the queue, or the slot that it has led to meanwhile. It reports whether the tenant has
// all of its slots.
func (s *Server) leave(a *Account, k Kind, turn chan struct{}) (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = a.slots[k].used >= a.mostSlots(k)
	if i := slices.Index(a.slots[k].queue, turn); i >= 0 {
		a.slots[k].queue = slices.Delete(a.slots[k].queue, i, i+1)
		return all
	}
	s.release(a, k)
	return all
}

func (s *Server) free(a *Account, k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(a, k)
}

// release frees a slot of a tenant.
//
// Preconditions: s.mu is held.
func (s *Server) release(a *Account, k Kind) {
	a.slots[k].used--
	s.slots[k].free++
	s.enqueue(a, k)
	s.dispatch(k)
}

// enqueue adds a tenant to the waiting ones, unless it has nothing to start or all of its slots.
//
// Preconditions: s.mu is held.
func (s *Server) enqueue(a *Account, k Kind) {
	if len(a.slots[k].queue) > 0 && a.slots[k].used < a.mostSlots(k) && !slices.Contains(s.slots[k].waiting, a) {
		s.slots[k].waiting = append(s.slots[k].waiting, a)
	}
}

// mostSlots is how many slots of a kind the tenant may have.
//
// Preconditions: the server's lock is held.
func (a *Account) mostSlots(k Kind) int {
	switch k {
	case Connects:
		return a.limits.PendingConnects
	case Lookups:
		return a.limits.PendingLookups
	}
	return a.server.slots[k].perTenant
}

// dispatch gives free slots to waiting tenants.
//
// Preconditions: s.mu is held.
func (s *Server) dispatch(k Kind) {
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
