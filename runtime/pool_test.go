package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPoolOptions(t *testing.T) {
	for _, tc := range []struct {
		opts Options
		pool PoolOptions
		says string
	}{
		{Options{}, PoolOptions{Size: -1}, "limit Size"},
		{Options{}, PoolOptions{Size: 1025}, "limit Size"},
		{Options{}, PoolOptions{Parallel: -1}, "limit Parallel"},
		{Options{}, PoolOptions{Parallel: 65}, "limit Parallel"},
		{Options{}, PoolOptions{MaxAge: time.Millisecond}, "option MaxAge"},
		{Options{Cwd: "work"}, PoolOptions{}, "option Cwd"},
		{Options{Limits: Limits{OpenFiles: 1 << 20}}, PoolOptions{}, "limit OpenFiles"},
		{Options{Launcher: LauncherExec}, PoolOptions{Park: true}, "option Park"},
	} {
		p, err := NewPool(tc.opts, tc.pool)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v, %+v: %v, want an error about %q", tc.opts, tc.pool, err, tc.says)
		}
	}
	got, err := PoolOptions{}.resolve()
	if want := (PoolOptions{Size: 4, Parallel: 1, MaxAge: 10 * time.Minute}); got != want || err != nil {
		t.Errorf("defaults are %+v, %v", got, err)
	}
	if _, err := (PoolOptions{MaxAge: -1}).resolve(); err != nil {
		t.Error(err)
	}
}

// factory is a fake source of runtimes. Creating one takes a second, closing one no time.
type factory struct {
	mu          sync.Mutex
	made, ended []*NodeRuntime
	dead        []*NodeRuntime
	at          []time.Duration // start of each creation
	busy, most  int             // concurrent creations
	err         error           // result of creations
	began       time.Time
}

const creation = time.Second

// pool returns a pool that the test must close.
func (f *factory) pool(o PoolOptions) *Pool {
	f.began = time.Now()
	o, err := o.resolve()
	if err != nil {
		panic(err)
	}
	p := newPool(o, f.create)
	p.alive = func(rt *NodeRuntime) bool { return !f.has(&f.dead, rt) }
	p.closeRuntime = func(rt *NodeRuntime) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = append(f.ended, rt)
		return nil
	}
	p.start()
	return p
}

func (f *factory) create(ctx context.Context) (*NodeRuntime, error) {
	f.mu.Lock()
	f.busy++
	f.most = max(f.most, f.busy)
	f.at = append(f.at, time.Since(f.began))
	f.mu.Unlock()
	select {
	case <-time.After(creation):
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	if err := errors.Join(f.err, ctx.Err()); err != nil {
		return nil, err
	}
	rt := &NodeRuntime{}
	f.made = append(f.made, rt)
	return rt, nil
}

func (f *factory) has(list *[]*NodeRuntime, rt *NodeRuntime) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(*list, rt)
}

func (f *factory) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// attempts returns the start of each creation, and the maximum number of concurrent ones.
func (f *factory) attempts() (at []time.Duration, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.at), f.most
}

// count returns how many runtimes were created, and how many of them were closed.
func (f *factory) count() (made, ended int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.made), len(f.ended)
}

func (f *factory) expect(t *testing.T, made, ended int) {
	t.Helper()
	synctest.Wait()
	if m, e := f.count(); m != made || e != ended {
		t.Errorf("%d created, %d closed; want %d, %d", m, e, made, ended)
	}
}

func get(t *testing.T, p *Pool) *NodeRuntime {
	t.Helper()
	rt, err := p.Get(t.Context())
	if err != nil {
		t.Error(err)
	}
	return rt
}

func TestPoolFillsAndRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 5, Parallel: 2})
		time.Sleep(time.Minute)
		f.expect(t, 5, 0)
		seen := map[*NodeRuntime]bool{}
		for range 5 {
			seen[get(t, p)] = true
		}
		time.Sleep(time.Minute)
		f.expect(t, 10, 0)
		seen[get(t, p)] = true
		if len(seen) != 6 {
			t.Errorf("6 Gets returned %d different runtimes", len(seen))
		}
		if _, most := f.attempts(); most != 2 {
			t.Errorf("%d concurrent creations", most)
		}
		time.Sleep(time.Minute)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		f.expect(t, 11, 5) // the pool no longer owns the runtimes from Get
	})
}

func TestPoolServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 1})
		defer p.Close()
		var mu sync.Mutex
		var served []int
		for i := range 6 {
			go func() {
				get(t, p)
				mu.Lock()
				defer mu.Unlock()
				served = append(served, i)
			}()
			synctest.Wait()
		}
		time.Sleep(6*creation + creation/2)
		f.expect(t, 6, 0)
		if !slices.Equal(served, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("served %v", served)
		}
	})
}

func TestPoolGetIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 1, Parallel: 3})
		mine := errors.New("no patience")
		for range 3 {
			go func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), creation/2, mine)
				defer cancel()
				if rt, err := p.Get(ctx); rt != nil || !errors.Is(err, mine) {
					t.Errorf("%v, %v", rt, err)
				}
			}()
		}
		time.Sleep(time.Minute)
		f.expect(t, 1, 0) // it is ready
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if rt, err := p.Get(ctx); rt != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", rt, err)
		}
		if !f.has(&f.made, get(t, p)) {
			t.Error("Get did not return the ready runtime")
		}
		p.Close()
	})
}

func TestPoolClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 2})
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if rt, err := p.Get(t.Context()); rt != nil || !errors.Is(err, ErrClosed) {
					t.Errorf("%v, %v", rt, err)
				}
			})
		}
		synctest.Wait()
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
		waiting.Wait()
		if _, err := p.Get(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if took := time.Since(f.began); took >= creation {
			t.Errorf("took %v: Close does not cancel creations", took)
		}
		f.expect(t, 0, 0)
	}) // fails if a goroutine leaks
}

// A failed creation fails one waiting Get. Without a waiting Get, retries are rare.
func TestPoolCreationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no room")
		f := factory{err: full}
		p := f.pool(PoolOptions{Size: 2})
		defer p.Close()
		time.Sleep(10 * time.Minute)
		at, _ := f.attempts()
		n := len(at)
		if n < 15 || n > 35 { // finally every 31 seconds
			t.Errorf("%d attempts in 10 minutes: %v", n, at)
		}
		if pause := at[1] - at[0] - creation; pause != firstRetry {
			t.Errorf("the second attempt started after %v", pause)
		}
		if pause := at[n-1] - at[n-2] - creation; pause != lastRetry {
			t.Errorf("the last attempt started after %v", pause)
		}
		asked := time.Now()
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if rt, err := p.Get(t.Context()); rt != nil || !errors.Is(err, full) {
					t.Errorf("%v, %v", rt, err)
				}
			})
		}
		waiting.Wait()
		if took := time.Since(asked); took > 3*creation {
			t.Errorf("three errors took %v", took)
		}
		f.fail(nil)
		get(t, p)
		time.Sleep(time.Minute)
		f.expect(t, 3, 0)
	})
}

func TestPoolReplacesDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 3})
		time.Sleep(time.Minute)
		kill := func(n int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.dead = append(f.dead, f.made[len(f.made)-n:]...)
		}
		kill(2) // detected by the pool's check
		time.Sleep(checkInterval + 3*creation)
		f.expect(t, 5, 2)
		kill(2) // detected by Get
		rt := get(t, p)
		if f.has(&f.dead, rt) {
			t.Error("Get returned a dead runtime")
		}
		rt = get(t, p)
		if f.has(&f.dead, rt) {
			t.Error("Get returned a dead runtime")
		}
		time.Sleep(time.Minute)
		f.expect(t, 9, 4)
		p.Close()
		f.expect(t, 9, 7)
	})
}

func TestPoolReplacesOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 3, MaxAge: time.Minute})
		time.Sleep(time.Minute + 30*time.Second)
		f.expect(t, 6, 3)
		f.fail(errors.New("no room"))
		time.Sleep(10 * time.Minute)
		f.expect(t, 6, 3) // old ones are kept until they can be replaced
		f.fail(nil)
		time.Sleep(time.Minute)
		f.expect(t, 9, 6)
		p.Close()
		f.expect(t, 9, 9)
	})
	synctest.Test(t, func(t *testing.T) {
		var f factory
		p := f.pool(PoolOptions{Size: 3, MaxAge: -1})
		time.Sleep(24 * time.Hour)
		f.expect(t, 3, 0)
		p.Close()
	})
}
