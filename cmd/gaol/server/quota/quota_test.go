package quota

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// large are limits that no test reaches.
var large = func() (l Limits) {
	for i := range names {
		f := reflect.ValueOf(&l).Elem().Field(i)
		f.Set(reflect.ValueOf(1 << 30).Convert(f.Type()))
	}
	return l
}()

// released returns how to end a reservation.
func released(r *Reservation, err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	return r.Release, nil
}

// reserve reserves a sandbox with a disk limit.
func reserve(a *Account, disk int64) (func(), error) {
	return released(a.Reserve(Limits{Sandboxes: 1, Disk: disk}))
}

// newSlots returns a server with start slots.
func newSlots(free, perTenant int) *Server {
	s := NewServer(large, large, nil)
	s.slots[Starts] = semaphore.NewWeighted(int64(free))
	for _, name := range []string{"a", "b", "c"} {
		s.Account(name).slots[Starts] = semaphore.NewWeighted(int64(perTenant))
	}
	return s
}

func TestEachLimit(t *testing.T) {
	admit := func(memory int64, cpus float64) func(*Account) (func(), error) {
		return func(a *Account) (func(), error) { return a.Admit(context.Background(), memory, cpus) }
	}
	for _, c := range []struct {
		limit string
		set   func(l *Limits)
		do    func(a *Account) (func(), error) // may be done twice
		never func(a *Account) (func(), error) // exceeds the limit alone
	}{
		{"sandboxes", func(l *Limits) { l.Sandboxes = 2 }, func(a *Account) (func(), error) { return reserve(a, 0) }, nil},
		{"diskBytes", func(l *Limits) { l.Disk = 20 }, func(a *Account) (func(), error) { return reserve(a, 10) }, func(a *Account) (func(), error) { return reserve(a, 21) }},
		{"files", func(l *Limits) { l.Files = 20 }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Files: 10})) }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Files: 21})) }},
		{"runs", func(l *Limits) { l.Runs = 2 }, admit(0, 0), nil},
		{"memoryBytes", func(l *Limits) { l.Memory = 20 }, admit(10, 0), admit(21, 0)},
		{"cpus", func(l *Limits) { l.CPUs = 0.2 }, admit(0, 0.1), admit(0, 0.3)},
		{"concurrentRequests", func(l *Limits) { l.Concurrent = 2 }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Concurrent: 1, Bodies: 0})) }, nil},
		{"bodyBytes", func(l *Limits) { l.Bodies = 20 }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Concurrent: 1, Bodies: 10})) }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Concurrent: 1, Bodies: 21})) }},
		{"bodyBytes", func(l *Limits) { l.Bodies = 20 }, held(10), held(21)},
		{"sessions", func(l *Limits) { l.Sessions = 2 }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Sessions: 1})) }, nil},
		{"connections", func(l *Limits) { l.Connections = 2 }, func(a *Account) (func(), error) { return released(a.Reserve(Limits{Connections: 1})) }, nil},
	} {
		for _, ofServer := range []bool{false, true} {
			server, tenant := large, large
			if c.set(&tenant); ofServer {
				server, tenant = tenant, large
			}
			s := NewServer(server, tenant, nil)
			a, b := s.Account("a"), s.Account("b")
			first, err1 := c.do(a)
			second, err2 := c.do(a)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatalf("%s: %v", c.limit, err)
			}
			for _, other := range []*Account{a, b} {
				release, err := c.do(other)
				refused := wantExceeded(t, err, c.limit, ofServer, retryAfter)
				if want := other == a || ofServer; refused != want {
					t.Errorf("%s, server %v: refused %v, want %v", c.limit, ofServer, refused, want)
				}
				if !refused {
					release()
				}
			}
			if c.never != nil {
				if _, err := c.never(b); !wantExceeded(t, err, c.limit, ofServer, 0) {
					t.Errorf("%s: more than the limit is admitted", c.limit)
				}
			}
			first()
			first() // does nothing
			if third, err := c.do(a); err != nil {
				t.Errorf("%s: after a release: %v", c.limit, err)
			} else {
				third()
			}
			second()
			wantUnused(t, s)
		}
	}
}

// held enters, and reserves memory later.
func held(bytes int64) func(*Account) (func(), error) {
	return func(a *Account) (func(), error) {
		r, err := a.Reserve(Limits{Concurrent: 1, Bodies: 0})
		if err == nil {
			err = r.Hold(bytes)
		}
		if err != nil {
			r.Release()
			return nil, err
		}
		return r.Release, nil
	}
}

// wantExceeded reports whether err is not nil; then it must be an Exceeded like this.
func wantExceeded(t *testing.T, err error, limit string, ofServer bool, retry time.Duration) bool {
	t.Helper()
	if err == nil {
		return false
	}
	e, ok := errors.AsType[*Exceeded](err)
	if !ok || e.Limit != limit || e.Server != ofServer || e.RetryAfter != retry {
		t.Errorf("%+v, want %s, server %v, retry %v", err, limit, ofServer, retry)
	}
	return true
}

// wantUnused fails the test if anything is still reserved.
func wantUnused(t *testing.T, s *Server) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Sums of fractions may leave a remainder.
	for name, rest := range s.total.byName() {
		if rest != 0 && (name != "cpus" || math.Abs(rest) > 1e-6) {
			t.Errorf("left: %+v", s.total)
		}
	}
	for _, a := range s.accounts {
		if u := a.use.byName(); a.turns != 0 || u["runs"] != 0 || u["sandboxes"] != 0 {
			t.Errorf("left of %s: %+v, %d turns", a.name, a.use, a.turns)
		}
	}
}

func TestRequestRate(t *testing.T) {
	l := large
	l.Requests = 0.001
	s := NewServer(large, l, map[string]Limits{"b": {Requests: 1000}})
	a, b := s.Account("a"), s.Account("b")
	if err := a.Request(); err != nil {
		t.Error(err)
	}
	wantExceeded(t, a.Request(), "requestsPerSec", false, retryAfter)
	for range 100 {
		if err := b.Request(); err != nil {
			t.Error(err)
		}
	}
	s.Set(l, large, Limits{}, nil)
	if err := a.Request(); err != nil {
		t.Error(err)
	}
	wantExceeded(t, b.Request(), "requestsPerSec", true, retryAfter)
}

// With new limits, reservations stay, and count.
func TestSetWhileInUse(t *testing.T) {
	s := NewServer(large, large, nil)
	a := s.Account("a")
	first, err1 := reserve(a, 10)
	second, err2 := reserve(a, 10)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	small := large
	small.Sandboxes = 2
	s.Set(large, small, Limits{}, nil)
	_, err := reserve(a, 0)
	if !wantExceeded(t, err, "sandboxes", false, retryAfter) {
		t.Error("the new limit is not enforced")
	}
	first()
	second()
	wantUnused(t, s)
}

// start calls Admit on a new goroutine. When start returns, the run is queued or admitted. It ends at
// once, or with ctx.
func start(ctx context.Context, s *Server, a *Account, started chan<- string, atOnce bool) {
	waiting := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return a.turns
	}
	before := waiting()
	go func() {
		if release, err := a.Admit(ctx, 0, 0); err == nil {
			started <- a.name
			if !atOnce {
				<-ctx.Done()
			}
			release()
		}
	}()
	for waiting() == before {
		time.Sleep(time.Millisecond)
	}
}

// Tenants take turns, whatever the order and the number of their runs.
func TestTurns(t *testing.T) {
	s := newSlots(1, 1)
	ctx := t.Context()
	a, b, c := s.Account("a"), s.Account("b"), s.Account("c")
	hold, err := a.Admit(ctx, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan string, 100)
	for _, next := range []*Account{a, a, a, a, b, b, c} {
		start(ctx, s, next, started, true)
	}
	hold()
	got := ""
	for range 7 {
		got += <-started
	}
	// a had its turn before the others came.
	if got != "bcabaaa" && got != "abcabaa" {
		t.Errorf("order %s", got)
	}
}

// A tenant never has all slots.
func TestSlotsOfOneTenant(t *testing.T) {
	s := newSlots(3, 2)
	started := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 10 {
		start(ctx, s, s.Account("a"), started, false)
	}
	if release, err := s.Account("b").Admit(t.Context(), 0, 0); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

func TestCanceledWait(t *testing.T) {
	s := newSlots(1, 1)
	hold, err := s.Account("a").Admit(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("gone")
	cancel(why)
	if _, err := s.Account("a").Admit(ctx, 1, 1); !errors.Is(err, why) && err != nil {
		t.Error(err)
	}
}

// Accounts that nothing distinguishes from new ones are forgotten; those in use are not.
func TestAccountsAreForgotten(t *testing.T) {
	s := NewServer(large, large, nil)
	busy := s.Account("busy")
	release, err := reserve(busy, 7)
	if err != nil {
		t.Fatal(err)
	}
	stale := s.Account("stale")
	for n := range 100_000 {
		s.Account(fmt.Sprint(n))
	}
	s.mu.Lock()
	count := len(s.accounts)
	s.mu.Unlock()
	if count > 2*minSweep {
		t.Errorf("%d accounts", count)
	}
	if s.Account("busy") != busy {
		t.Error("an account in use is forgotten")
	}
	undo, err := reserve(stale, 5) // it counts in the account that the tenant has now
	if err != nil {
		t.Fatal(err)
	}
	for name, u := range s.Usage() {
		if want := map[string]float64{"busy": 7, "stale": 5}[name]; u["diskBytes"] != want {
			t.Errorf("%s: %v", name, u["diskBytes"])
		}
	}
	undo()
	release()
	wantUnused(t, s)
}

// A tenant cannot get a new burst of requests by being forgotten.
func TestRateIsNotForgotten(t *testing.T) {
	l := large
	l.Requests = 0.001
	s := NewServer(large, l, nil)
	if err := s.Account("a").Request(); err != nil {
		t.Error(err)
	}
	for n := range 1000 {
		s.Account(fmt.Sprint(n))
	}
	wantExceeded(t, s.Account("a").Request(), "requestsPerSec", false, retryAfter)
	if s.Account("a").Request() == nil {
		t.Error("a new burst")
	}
}

func TestCheckLimits(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, l := range []Limits{{Sandboxes: -1}, {Runs: -1}, {Memory: -1}, {CPUs: -1}, {CPUs: nan}, {CPUs: 1 / (nan * 0)}, {Disk: -1}, {Files: -1}, {Requests: -1}, {Upload: -1}, {Concurrent: -1}, {Bodies: -1}} {
		if l.Check() == nil {
			t.Errorf("%+v", l)
		}
	}
}

// TestTexts: a large text of one tenant does not hold up that of another one, its turn ends after some time, and the
// tenant's next text comes later by its size.
func TestTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, rest = textRate / 4, time.Second / 4
		s := NewServer(large, large, nil)
		a, b := s.Account("a"), s.Account("b")
		s.slots[Texts], a.slots[Texts] = semaphore.NewWeighted(2), semaphore.NewWeighted(1)
		began := time.Now()
		for _, account := range []*Account{a, b} {
			if _, err := account.WaitText(t.Context(), size); err != nil || time.Since(began) > 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		for i, want := range []time.Duration{waits[Texts].most + rest, waits[Texts].most + 2*rest} {
			done, err := a.WaitText(t.Context(), size)
			if err != nil || time.Since(began) != want {
				t.Errorf("text %d: %v after %v", i+2, err, time.Since(began))
			}
			done()
		}
		time.Sleep(waits[Texts].most)
		synctest.Wait()
		wantUnused(t, s)
	})
}

// TestBuilds: one image of a tenant is built at the same time, and two in all.
func TestBuilds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(large, large, nil)
		var done []func()
		for _, c := range []struct{ tenant, refused string }{{"a", ""}, {"a", "your quota queue"}, {"b", ""}, {"c", "the server's quota queue"}} {
			free, err := s.Account(c.tenant).Wait(t.Context(), Builds)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%+v: %v", c, err)
			}
			if err == nil {
				done = append(done, free)
			}
		}
		for _, free := range done {
			free()
		}
		wantUnused(t, s)
	})
}

// TestImageQuotas checks that tenants do not inherit the quotas of images from the server.
func TestImageQuotas(t *testing.T) {
	s := NewServer(Limits{Runs: 5, Images: 10, ImageBytes: 10}, Limits{}, map[string]Limits{"b": {Images: 2, ImageBytes: 3}})
	for tenant, want := range map[string]Limits{"a": {Runs: 5}, "b": {Runs: 5, Images: 2, ImageBytes: 3}} {
		if got := s.Account(tenant).Limits(); got != want {
			t.Errorf("%s: %+v", tenant, got)
		}
	}
}

// The limits of a user also apply to the user of another machine.
func TestLimitsByName(t *testing.T) {
	tenant := large
	tenant.Runs = 1
	s := NewServer(large, tenant, map[string]Limits{"uid:1000": {Runs: 3}, "token:a": {Runs: 4}})
	for name, want := range map[string]int{"uid:1000": 3, "uid:1000@machine": 3, "uid:100": 1, "uid:100@machine": 1, "token:a": 4, "token:b": 1} {
		if got := s.Account(name).Limits().Runs; got != want {
			t.Errorf("%s may have %d runs, want %d", name, got, want)
		}
	}
}
