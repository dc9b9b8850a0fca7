package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// Whatever happens at the same time, all slots and reservations are free at the end, and no limit is
// ever exceeded.
func TestNothingIsLost(t *testing.T) {
	l := large
	l.Runs, l.Memory = 20, 1000
	s := NewServer(large, l, nil)
	s.slots[Starts] = semaphore.NewWeighted(3)
	for name := range 4 {
		s.Account(fmt.Sprint(name)).slots[Starts] = semaphore.NewWeighted(2)
	}
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for range 50 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(3000))*time.Microsecond)
				a := s.Account(fmt.Sprint(r.IntN(4)))
				release, err := a.Admit(ctx, int64(r.IntN(200)), r.Float64())
				if err == nil {
					check(t, s)
					time.Sleep(time.Duration(r.IntN(500)) * time.Microsecond)
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	wantUnused(t, s)
	if !s.slots[Starts].TryAcquire(3) || s.slots[Starts].TryAcquire(1) {
		t.Error("slots are lost")
	}
}

func check(t *testing.T, s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if u := a.use.byName(); u["runs"] > 20 || u["memoryBytes"] > 1000 {
			t.Errorf("%s has %+v", a.name, u)
		}
	}
}

// FuzzQuota makes reservations in any order, and checks the sums.
func FuzzQuota(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 100, 50})
	f.Fuzz(func(t *testing.T, steps []byte) {
		l := Limits{Sandboxes: 3, Disk: 50, Concurrent: 3, Bodies: 50}.Or(large)
		s := NewServer(l, l, nil)
		var undo []func()
		for _, step := range steps {
			a := s.Account(string('a' + rune(step&1)))
			do := func(n int64) (func(), error) { return reserve(a, n) }
			if step&2 != 0 {
				do = func(n int64) (func(), error) { return released(a.Reserve(Limits{Concurrent: 1, Bodies: n})) }
			}
			if step&4 != 0 && len(undo) > 0 {
				undo[0]()
				undo = undo[1:]
			} else if release, err := do(int64(step >> 3)); err == nil {
				undo = append(undo, release)
			}
			u := s.total.byName()
			if u["sandboxes"] > 3 || u["diskBytes"] > 50 || u["concurrentRequests"] > 3 || u["bodyBytes"] > 50 || u["sandboxes"]+u["concurrentRequests"] != float64(len(undo)) {
				t.Fatalf("%+v, %d reservations", u, len(undo))
			}
		}
		for _, release := range undo {
			release()
		}
		wantUnused(t, s)
	})
}
