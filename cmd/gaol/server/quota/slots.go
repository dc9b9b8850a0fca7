package quota

import (
	"context"
	"math"
	goruntime "runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
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

// slots are the slots of each kind.
type slots [kinds]*semaphore.Weighted

// serverSlots returns the slots that all tenants share. There are more than a tenant has, so that one tenant cannot
// delay the runs of another.
func serverSlots(l Limits) (s slots) {
	processors := goruntime.NumCPU()
	for k, n := range [kinds]int{
		Starts: startSlots * processors, Creates: processors, Connects: l.PendingConnects, Lookups: l.PendingLookups,
		Texts: max(2, processors/2), Listings: math.MaxInt, Copies: math.MaxInt,
	} {
		s[k] = semaphore.NewWeighted(int64(n))
	}
	return s
}

// tenantSlots returns the slots of one tenant. Work starts in the order in which it waits, so that other tenants do not
// wait for long. Few slots for listings and copies bound the memory and the disk bandwidth that a tenant uses.
func tenantSlots(l Limits) (s slots) {
	processors := goruntime.NumCPU()
	for k, n := range [kinds]int{
		Starts: startsOfTenant * processors, Creates: max(1, processors/2), Connects: l.PendingConnects, Lookups: l.PendingLookups,
		Texts: max(1, processors/4), Listings: 2, Copies: 2,
	} {
		s[k] = semaphore.NewWeighted(int64(n))
	}
	return s
}

// wait waits for a slot, first of the tenant and then of the server. The returned function frees it, unless that has
// happened before.
func (s *Server) wait(ctx context.Context, a *Account, k Kind) (free func(), err error) {
	if s.noTurns {
		return func() {}, nil
	}
	s.mu.Lock()
	a = a.current()
	a.turns++
	own, all := a.slots[k], s.slots[k]
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		a.turns--
	}
	late, cancel := context.WithTimeout(ctx, waits[k].wait)
	defer cancel()
	exceeded := &Exceeded{Limit: waits[k].limit, RetryAfter: retryAfter}
	if err = own.Acquire(late, 1); err == nil {
		exceeded.Server = true
		if err = all.Acquire(late, 1); err != nil {
			own.Release(1)
		}
	}
	if err != nil {
		leave()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, exceeded
	}
	free = sync.OnceFunc(func() {
		all.Release(1)
		own.Release(1)
		leave()
	})
	if most := waits[k].most; most > 0 {
		time.AfterFunc(most, free)
	}
	return free, nil
}
