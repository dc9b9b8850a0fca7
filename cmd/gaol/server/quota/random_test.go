package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Whatever happens at the same time, all slots and reservations are free at the end, and no limit is
// ever exceeded.
func TestNothingIsLost(t *testing.T) {
	s := newSlots(3, 2)
	l := large
	l.Runs, l.Memory = 20, 1000
	s.Set(large, l, nil)
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
				if r.IntN(50) == 0 {
					s.Set(large, l, nil)
				}
			}
		})
	}
	all.Wait()
	wantUnused(t, s)
	if s.slots[Starts].free != 3 {
		t.Errorf("%d free slots", s.slots[Starts].free)
	}
}

func check(t *testing.T, s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := 0
	for _, a := range s.accounts {
		used += a.slots[Starts].used
		if a.slots[Starts].used > s.slots[Starts].perTenant || a.use.Runs > 20 || a.use.Memory > 1000 {
			t.Errorf("%s has %+v %+v", a.name, a.slots, a.use)
		}
	}
	if used+s.slots[Starts].free != 3 || s.slots[Starts].free < 0 {
		t.Errorf("%d slots used, %d free", used, s.slots[Starts].free)
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
			do := a.Reserve
			if step&2 != 0 {
				do = func(n int64) (func(), error) { return released(a.Enter(n)) }
			}
			if step&4 != 0 && len(undo) > 0 {
				undo[0]()
				undo = undo[1:]
			} else if release, err := do(int64(step >> 3)); err == nil {
				undo = append(undo, release)
			}
			if u := s.total; u.Sandboxes > 3 || u.Disk > 50 || u.Concurrent > 3 || u.Bodies > 50 || u.Sandboxes+u.Concurrent != len(undo) {
				t.Fatalf("%+v, %d reservations", u, len(undo))
			}
		}
		for _, release := range undo {
			release()
		}
		wantUnused(t, s)
	})
}
