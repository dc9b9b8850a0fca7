package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// testFleet is a ledger of tests. Its nodes are servers.
type testFleet struct {
	t       *testing.T
	limits  Limits // of the tenant
	changes atomic.Int64
	failing atomic.Int32 // of a hundred changes: half of them are made nevertheless

	sum sync.Mutex // of one lock of all nodes

	mu       sync.Mutex
	grants   map[string]Grants
	revision int
	nodes    []*testNode
}

// testNode is a node. It implements [Ledger].
type testNode struct {
	*Server
	fleet *testFleet
	id    atomic.Pointer[string]
	lost  atomic.Bool
	away  atomic.Bool // it cannot reach the ledger
}

// newFleet returns a fleet whose tenants have limits that the settings name.
func newFleet(t *testing.T, nodes int, named Limits) *testFleet {
	f := &testFleet{t: t, limits: named, grants: map[string]Grants{}}
	for i := range nodes {
		f.add(fmt.Sprint("n", i))
	}
	return f
}

func (f *testFleet) add(id string) *testNode {
	n := &testNode{Server: NewServer(large, large, nil), fleet: f}
	n.id.Store(&id)
	n.Share(n)
	n.Set(large, f.limits.Or(large), f.limits, nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = append(f.nodes, n)
	return n
}

func (n *testNode) Node() string { return *n.id.Load() }
func (n *testNode) Live() int    { return len(n.fleet.live()) }

func (f *testFleet) live() map[string]*testNode {
	f.mu.Lock()
	defer f.mu.Unlock()
	live := map[string]*testNode{}
	for _, n := range f.nodes {
		if !n.lost.Load() {
			live[n.Node()] = n
		}
	}
	return live
}

var errAway = errors.New("the ledger is away")

func (n *testNode) Change(_ context.Context, tenant string, change func(Grants)) error {
	f := n.fleet
	f.changes.Add(1)
	for {
		if n.away.Load() || n.lost.Load() {
			return errAway
		}
		live := f.live()
		f.mu.Lock()
		all, revision := Grants{}, f.revision
		for id, by := range f.grants[tenant] {
			if live[id] != nil {
				all[id] = maps.Clone(by)
			}
		}
		f.mu.Unlock()
		fails := rand.Int32N(100) < f.failing.Load()
		if fails && rand.IntN(2) == 0 {
			return errAway
		}
		change(all)
		f.mu.Lock()
		if f.revision != revision {
			f.mu.Unlock()
			continue
		}
		f.revision++
		f.grants[tenant] = all
		f.mu.Unlock()
		f.check(tenant)
		if fails {
			return errAway
		}
		return nil
	}
}

func (n *testNode) Recall(tenant string) {
	for id, other := range n.fleet.live() {
		if id != n.Node() {
			go other.Recalled(tenant)
		}
	}
}

// sums returns the grants of the ledger, and what the nodes that are not lost use. The grants are at least the use.
func (f *testFleet) sums(tenant string) (granted, used amounts) {
	f.sum.Lock()
	defer f.sum.Unlock()
	live := f.live()
	for _, n := range live { // so that neither changes
		n.mu.Lock()
		defer n.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, n := range live {
		if a := n.accounts[tenant]; a != nil {
			for i, limit := range a.shared {
				has := f.grants[tenant][id][names[i]]
				if granted[i] += has; limit > 0 {
					used[i] += a.use[i]
				}
				if a.granted.node == id && a.granted.may[i] > has+tolerance {
					f.t.Errorf("%s may hand out %v of %s, and the ledger has %v", id, a.granted.may[i], names[i], has)
				}
			}
		}
	}
	return granted, used
}

// check fails the test if the nodes exceed the limits.
func (f *testFleet) check(tenant string) {
	granted, used := f.sums(tenant)
	for i, limit := range f.limits.amounts() {
		if limit > 0 && isHeld(i) && max(granted[i], used[i]) > limit+tolerance {
			f.t.Errorf("%v granted, %v used of %s: the limit is %v", granted[i], used[i], names[i], limit)
		}
	}
}

func isHeld(i int) bool { return i != field("requestsPerSec") && i != field("batchBytes") }

func field(name string) int {
	for i := range names {
		if names[i] == name {
			return i
		}
	}
	panic(name)
}

// fill makes reservations on a node until one is refused, and returns them.
func fill(t *testing.T, n *testNode, u Limits) (list []*Reservation) {
	t.Helper()
	time.Sleep(recallTime) // a former refusal
	for {
		r, err := n.Account("a").Reserve(u)
		if err != nil {
			if e, ok := errors.AsType[*Exceeded](err); !ok || e.Server || e.RetryAfter == 0 {
				t.Errorf("%v: want an exhausted quota of the tenant, and when to retry", err)
			}
			return list
		}
		list = append(list, r)
	}
}

func releaseAll(list []*Reservation) {
	for _, r := range list {
		r.Release()
	}
}

// Whatever nodes do at the same time, and whatever fails, they do not exceed limits, and nothing is lost.
func TestSharedLimits(t *testing.T) {
	f := newFleet(t, 4, Limits{Runs: 20, Memory: 1000, CPUs: 7.5})
	f.failing.Store(5)
	ctx, stop := context.WithCancel(t.Context())
	var work, checks sync.WaitGroup
	checks.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			f.check("a")
		}
	})
	var made atomic.Int64
	for i, n := range f.nodes {
		n.sweepAt = 1 // accounts are forgotten as early as possible
		for j := range 4 {
			work.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for range 100 {
					if r.IntN(20) == 0 {
						_, _ = n.Account("a").settle(amounts{}, false) // as Keep does
					}
					n.Account(fmt.Sprint("b", r.IntN(9)))
					held, err := n.Account("a").Reserve(Limits{Runs: 1 + r.IntN(3), Memory: r.Int64N(300), CPUs: r.Float64()})
					if err != nil {
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
						continue
					}
					made.Add(1)
					time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
					if r.IntN(3) == 0 {
						_ = held.Add(Limits{Runs: 1})
					}
					held.Release()
				}
			})
		}
	}
	work.Wait()
	stop()
	checks.Wait()
	t.Logf("%d reservations, %d changes of the ledger", made.Load(), f.changes.Load())
	if made.Load() < 200 {
		t.Errorf("only %d reservations were made", made.Load())
	}
	f.failing.Store(0)
	for _, n := range f.nodes {
		wantUnused(t, n.Server)
	}
	for _, n := range f.nodes { // each gets all that the others do not use
		list := fill(t, n, Limits{Runs: 1, Memory: 50, CPUs: 0.375})
		if len(list) != 20 {
			t.Errorf("node %s gets %d of 20", n.Node(), len(list))
		}
		f.check("a")
		releaseAll(list)
	}
}

// A node uses its grants without the ledger, and no more.
func TestLedgerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Limits{Runs: 20})
		a := f.nodes[0]
		list := fill(t, a, Limits{Runs: 1})
		releaseAll(list[5:])
		before := f.changes.Load()
		go a.Keep(t.Context())
		a.away.Store(true)
		time.Sleep(3 * keepTime)
		if len(list) != 20 || len(fill(t, a, Limits{Runs: 1})) != 15 || f.changes.Load() == before {
			t.Errorf("%d runs, and then others than 15 without the ledger", len(list))
		}
		if n := len(fill(t, f.nodes[1], Limits{Runs: 1})); n != 0 {
			t.Errorf("the other node gets %d", n)
		}
	})
}

// Unused grants are returned, also if the answer of the ledger was lost.
func TestUnusedGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Limits{Runs: 20, Memory: 100})
		a, b := f.nodes[0], f.nodes[1]
		go a.Keep(t.Context())
		list := fill(t, a, Limits{Runs: 1, Memory: 1})
		releaseAll(list[3:])
		before := f.changes.Load()
		for range 50 { // needs no ledger
			r, err := a.Account("a").Reserve(Limits{Runs: 2, Memory: 7})
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		}
		if n := f.changes.Load() - before; n != 0 {
			t.Errorf("%d changes of the ledger", n)
		}
		time.Sleep(keepTime - time.Second)
		if granted, _ := f.sums("a"); granted[runs] != 20 {
			t.Errorf("%v are left early", granted[runs])
		}
		time.Sleep(2 * keepTime)
		if granted, used := f.sums("a"); granted != used || used[runs] != 3 {
			t.Errorf("%v are granted, %v used", granted.byName(), used.byName())
		}
		f.failing.Store(100)
		releaseAll(list)
		time.Sleep(3 * keepTime)
		f.failing.Store(0)
		time.Sleep(2 * keepTime)
		if got := f.grants["a"]; len(got) != 0 {
			t.Errorf("%v are left", got)
		}
		if n := len(fill(t, b, Limits{Runs: 1})); n != 20 {
			t.Errorf("the other node gets %d", n)
		}
	})
}

// The grants of a lost node return, and those of its former id are void. What it still uses counts.
func TestLostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Limits{Runs: 20})
		a, b := f.nodes[0], f.nodes[1]
		list := fill(t, a, Limits{Runs: 1})
		releaseAll(list[4:])
		a.lost.Store(true)
		if n := len(fill(t, a, Limits{Runs: 1})); n != 16 {
			t.Errorf("a node that does not know yet that it is lost hands out %d", n)
		}
		if got := fill(t, b, Limits{Runs: 1}); len(got) != 20 {
			t.Errorf("the other node gets %d", len(got))
		} else {
			releaseAll(got[10:])
		}
		none := ""
		a.id.Store(&none)
		releaseAll(list[:1])
		if n := len(fill(t, a, Limits{Runs: 1})); n != 0 {
			t.Errorf("a node without an id hands out %d", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Limits{Runs: 20})
		a, b := f.nodes[0], f.nodes[1]
		releaseAll(fill(t, a, Limits{Runs: 1})[4:])
		id := "new"
		f.limits.Runs = 24
		a.id.Store(&id)
		if n := len(fill(t, b, Limits{Runs: 1})); n != 20 {
			t.Errorf("the other node gets %d", n)
		}
		if n := len(fill(t, a, Limits{Runs: 1})); n != 0 {
			t.Errorf("the new node hands out %d: its former grants are void", n)
		}
		if granted, _ := f.sums("a"); granted[runs] != 24 {
			t.Errorf("%v are granted: the new node uses 4", granted[runs])
		}
	})
}

// New limits bind at once, and grants shrink as reservations end.
func TestNewLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Limits{Runs: 20})
		set := func(runs int) {
			f.limits.Runs = max(runs, 20)
			for _, n := range f.nodes {
				n.Set(large, Limits{Runs: runs}.Or(large), Limits{Runs: runs}, nil)
			}
		}
		a, b := f.nodes[0], f.nodes[1]
		of := map[*testNode][]*Reservation{}
		for range 10 {
			for _, n := range f.nodes {
				r, err := n.Account("a").Reserve(Limits{Runs: 1})
				if err != nil {
					t.Fatal(err)
				}
				of[n] = append(of[n], r)
			}
		}
		set(5)
		for _, n := range []*testNode{a, b} {
			releaseAll(of[n][:6])
			if n := len(fill(t, n, Limits{Runs: 1})); n != 0 {
				t.Errorf("%d more runs, although those before exceed the limit", n)
			}
		}
		releaseAll(of[b][6:])
		if n := len(fill(t, b, Limits{Runs: 1})); n != 1 {
			t.Errorf("%d more runs, want 5 in all", n)
		}
		set(30)
		if n := len(fill(t, a, Limits{Runs: 1})); n != 25 {
			t.Errorf("%d more runs, want 30 in all", n)
		}
	})
}

// A sandbox that moves counts once: its new node gets it at the limit, and no node gets more meanwhile.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, Limits{Sandboxes: 20, Disk: 200})
		a, b := f.nodes[0], f.nodes[1]
		u := Limits{Sandboxes: 1, Disk: 10}
		list := fill(t, a, u)
		f.limits.Sandboxes, f.limits.Disk = 21, 210 // that one is on both nodes
		moved, err := b.Account("a").Adopt(u)
		if len(list) != 20 || err != nil {
			t.Fatal(len(list), err)
		}
		list[0].Moved.Store(true)
		list[0].Release()
		f.limits.Sandboxes, f.limits.Disk = 20, 200
		for _, n := range f.nodes {
			if n := len(fill(t, n, u)); n != 0 {
				t.Errorf("%d more", n)
			}
		}
		f.check("a")
		moved.Release()
		if n := len(fill(t, f.nodes[2], u)); n != 1 {
			t.Errorf("%d more, want 1", n)
		}
	})
}

// Rates are divided by the nodes, and limits that the settings do not name are those of each machine. Neither needs the ledger.
func TestLimitsOfEachNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, Limits{Requests: 8, BatchBytes: 100})
		a := f.nodes[0]
		wantRequests := func(n int) {
			t.Helper()
			for i := range n {
				if err := a.Account("a").Request(); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
			if a.Account("a").Request() == nil {
				t.Errorf("%d more requests than %d", 1, n)
			}
		}
		go a.Keep(t.Context())
		time.Sleep(keepTime + time.Second)
		wantRequests(4) // 2 a second, in a burst twice as many
		if _, err := a.Account("a").Reserve(Limits{BatchBytes: 26}); err == nil {
			t.Error("more bytes than a quarter")
		}
		if n := len(fill(t, a, Limits{BatchBytes: 5})); n != 5 {
			t.Errorf("%d reservations of 5 bytes", n)
		}
		for _, n := range f.nodes[2:] {
			n.lost.Store(true)
		}
		time.Sleep(keepTime)
		wantRequests(8)
		if _, err := a.Account("a").Reserve(Limits{Runs: 1000, Sandboxes: 1000, Memory: 1e6}); err != nil {
			t.Error(err)
		}
		if n := f.changes.Load(); n != 0 {
			t.Errorf("%d changes of the ledger", n)
		}
	})
}

// The limits of a user bind on all machines, under the name that the user has there.
func TestUserOfOtherMachine(t *testing.T) {
	s := NewServer(large, large, map[string]Limits{"uid:7": {Runs: 3}})
	if got := s.Account("uid:7@machine").Limits().Runs; got != 3 {
		t.Errorf("%d runs", got)
	}
}
