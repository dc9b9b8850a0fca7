package member

import (
	"testing"
	"time"
)

// pick counts the results of 200 calls of Pick, with hints after each call.
func (t *testTable) pick(ownBusy float64, draining bool) map[string]int {
	t.t.Helper()
	got := map[string]int{}
	for range 200 {
		loads := map[string]Load{}
		for id, n := range t.nodes {
			loads[id] = n.load
		}
		got[t.Pick(ownBusy, draining)]++
		for id, l := range loads {
			t.hint(id, l)
		}
	}
	return got
}

func TestPick(t *testing.T) {
	only := func(id string) func(map[string]int) bool { return func(n map[string]int) bool { return n[id] == 200 } }
	for name, tc := range map[string]struct {
		own      float64 // busy
		draining bool
		a, b, c  Load
		change   func(*testTable)
		want     func(map[string]int) bool
	}{
		"idle":            {want: only(own)},
		"three quarters":  {own: 0.75, want: only(own)},
		"busy":            {own: 0.76, want: func(n map[string]int) bool { return n[own] == 0 && len(n) == 3 }},
		"all more busy":   {own: 0.9, a: Load{Busy: 0.95}, b: Load{Busy: 1}, c: Load{Busy: 2}, want: only(own)},
		"less busy of 2":  {own: 0.9, a: Load{Busy: 0.1}, b: Load{Busy: 0.2}, c: Load{Busy: 0.3}, want: lessBusyOfTwo},
		"all very busy":   {draining: true, a: Load{Busy: 3}, b: Load{Busy: 4}, c: Load{Busy: 5}, want: lessBusyOfTwo},
		"draining":        {draining: true, want: func(n map[string]int) bool { return n[own] == 0 && n[""] == 0 }},
		"draining, alone": {draining: true, change: func(tt *testTable) { tt.pass(time.Minute, own) }, want: only("")},
		"others drain": {own: 1, change: func(tt *testTable) {
			for _, id := range []string{nodeA, nodeB} {
				r := record(id)
				r.Draining = true
				tt.put(r)
			}
		}, want: only(nodeC)},
		"other protocols": {own: 1, change: func(tt *testTable) {
			older, newer := record(nodeA), record(nodeC)
			older.MinProtocol, older.MaxProtocol = Protocol-1, Protocol-1
			newer.MinProtocol, newer.MaxProtocol = Protocol+1, Protocol+2
			tt.put(older)
			tt.put(newer)
		}, want: only(nodeB)},
		"a wide protocol": {own: 1, change: func(tt *testTable) {
			tt.Apply(nodeKey+nodeA, nil)
			tt.Apply(nodeKey+nodeB, nil)
			r := record(nodeC)
			r.MinProtocol, r.MaxProtocol = Protocol-1, Protocol+1
			tt.put(r)
		}, want: only(nodeC)},
		"a version that is too old": {own: 1, change: func(tt *testTable) {
			tt.Apply(nodeKey+nodeA, nil)
			tt.Apply(nodeKey+nodeB, nil)
			r := record(nodeC)
			r.MinProtocol, r.MaxProtocol = OldestProtocol-1, OldestProtocol-1
			tt.put(r)
		}, want: only(own)},
		"dead": {own: 1, change: func(tt *testTable) {
			tt.dies(nodeA, "")
			tt.dies(nodeB, "")
		}, want: only(nodeC)},
	} {
		tt := newTable(t)
		tt.renew(own, nodeA, nodeB, nodeC)
		tt.hint(nodeA, tc.a)
		tt.hint(nodeB, tc.b)
		tt.hint(nodeC, tc.c)
		if tc.change != nil {
			tc.change(tt)
		}
		suspect := tt.Get(nodeA).State == Suspect
		if suspect { // the hints of pick would be signs of life
			if got := tt.Pick(tc.own, tc.draining); !tc.want(map[string]int{got: 200}) {
				t.Errorf("%s: %q", name, got)
			}
		} else if got := tt.pick(tc.own, tc.draining); !tc.want(got) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// lessBusyOfTwo reports whether the busiest node was never picked, and the other ones in the ratio of 2 to 1.
func lessBusyOfTwo(n map[string]int) bool {
	return n[nodeA] > n[nodeB] && n[nodeB] > 30 && n[nodeA]+n[nodeB] == 200
}

// Between two hints, the work that was sent to a node, and has not ended, counts.
func TestPickSpreads(t *testing.T) {
	tt := newTable(t)
	tt.renew(own, nodeA, nodeB)
	got := map[string]int{}
	for range 300 {
		got[tt.Pick(0, true)]++
	}
	if got[nodeA] < 140 || got[nodeB] < 140 || len(got) != 2 {
		t.Errorf("picked %v", got)
	}
	tt.hint(nodeA, Load{})
	for range 100 {
		if id := tt.Pick(0, true); id != nodeA {
			t.Fatalf("picked %s, but %s has less", id, nodeA)
		}
	}
	tt.hint(nodeA, Load{})
	tt.hint(nodeB, Load{})
	first := tt.Pick(0, true)
	for range 60 {
		id := tt.Pick(0, true)
		if id == first {
			t.Fatalf("picked %s, which has a request in progress", id)
		}
		tt.Ended(id)
	}
}
