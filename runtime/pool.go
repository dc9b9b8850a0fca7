package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gaol/runtime/isolation"
)

// PoolOptions are the options of a [Pool]. A zero field takes its default.
type PoolOptions struct {
	// Size is how many unused runtimes are kept. Each takes a process of 0.3 MB, a thread of the
	// host process and 9 file descriptors. Default 4; at most 1,024.
	Size int

	// Parallel is how many runtimes are created concurrently. Creating one takes a fifth of Node's
	// start, and competes with the callers' runs for processors. Default 1; at most 64.
	Parallel int

	// MaxAge is how long a runtime may stay unused. Older ones are replaced one after another,
	// so that an idle pool follows a change of its image. While creation fails, the old ones
	// stay. Default 10 minutes; at least a second. Negative: no limit.
	MaxAge time.Duration

	// Park also forks the process of each runtime's first run in advance: it waits for its
	// program inside the jail, under the run's limits. Each uses some 2 MB. It requires
	// LauncherZygote, and so IsolationNative: otherwise NewPool returns ErrUnsupported.
	Park bool
}

var defaultPool = PoolOptions{Size: 4, Parallel: 1, MaxAge: 10 * time.Minute}

const (
	maxPoolSize     = 1024 // a quarter of the jails that a machine has room for
	maxPoolParallel = 64
	minPoolMaxAge   = time.Second
)

func (o PoolOptions) resolve() (PoolOptions, error) {
	switch o = orDefaults(o, defaultPool); {
	case o.Size < 1 || o.Size > maxPoolSize:
		return o, optionError("Size", "%d is not between 1 and %d", o.Size, maxPoolSize)
	case o.Parallel < 1 || o.Parallel > maxPoolParallel:
		return o, optionError("Parallel", "%d is not between 1 and %d", o.Parallel, maxPoolParallel)
	case o.MaxAge > 0 && o.MaxAge < minPoolMaxAge:
		return o, optionError("MaxAge", "%v is shorter than %v", o.MaxAge, minPoolMaxAge)
	}
	return o, nil
}

// Pool keeps unused runtimes ready, all with the same options. Use a pool when you cannot
// wait for Create. It is safe for concurrent use.
//
//	create ──> ready ── Get ──> owned by the caller, which closes it
//	             └── dead or too old: closed and replaced
type Pool struct {
	options PoolOptions

	// Tests replace these.
	create       func(context.Context) (*NodeRuntime, error)
	alive        func(*NodeRuntime) bool
	closeRuntime func(*NodeRuntime) error

	open    context.Context // ends when Close begins
	cancel  context.CancelFunc
	work    sync.WaitGroup // of all goroutines
	closers chan struct{}  // a semaphore for closing runtimes

	mu       sync.Mutex
	closed   bool
	ready    []idleRuntime  // the oldest first; none while a Get waits
	waiting  []chan outcome // of the Gets, in order; each has room for one element
	creating int
	failures int         // to create, in a row
	retry    time.Time   // nothing is created earlier, unless a Get waits
	timer    *time.Timer // calls replace
	failed   error       // the first error of closing a runtime that no Get returned

	close sync.Once
}

// idleRuntime is an unused runtime.
type idleRuntime struct {
	runtime *NodeRuntime
	since   time.Time
}

// outcome is the result of a waiting Get.
type outcome struct {
	runtime *NodeRuntime
	err     error
}

// NewPool returns a pool of runtimes that [Create] makes from o, and begins to fill it in the
// background. It checks the options, and that this process may create jails. Later errors,
// such as a failed build of a missing image, are returned by Get. Each creation looks up the
// image again, so that the pool uses the new image of a name as soon as there is one.
// o.Progress is written from the background.
func NewPool(o Options, p PoolOptions) (_ *Pool, err error) {
	defer wrap(&err, "new pool")
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	if p, err = p.resolve(); err != nil {
		return nil, err
	}
	if err := s.Isolation.Check(isolation.Park); p.Park && err != nil {
		return nil, optionError("Park", "%w", err)
	}
	if p.Park && s.Launcher != LauncherZygote {
		return nil, optionError("Park", "the launcher is %v: %w", s.Launcher, ErrUnsupported)
	}
	pool := newPool(p, func(ctx context.Context) (*NodeRuntime, error) {
		rt, err := create(ctx, s)
		if err == nil && p.Park {
			if err = rt.sandbox.Warm(ctx, true); err != nil {
				return nil, errors.Join(err, rt.Close())
			}
		}
		return rt, err
	})
	pool.alive = func(rt *NodeRuntime) bool { return rt.sandbox.Alive() }
	pool.closeRuntime = (*NodeRuntime).Close
	pool.start()
	return pool, nil
}

func newPool(o PoolOptions, create func(context.Context) (*NodeRuntime, error)) *Pool {
	const closers = 4 // closing competes with the callers' runs, too
	p := &Pool{options: o, create: create, closers: make(chan struct{}, closers)}
	p.open, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *Pool) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(0, p.replace)
}

// Get returns an unused runtime. The caller owns it and must close it: it does not return to
// the pool, and the pool's Close does not affect it.
//
// If the pool is empty, Get waits for the next runtime; Gets are served in order. When a
// creation fails, the first waiting Get returns its error, which is Create's, and the others
// wait for the next attempt. If ctx ends first, the error is its cause; for a closed pool it
// is [ErrClosed].
func (p *Pool) Get(ctx context.Context) (_ *NodeRuntime, err error) {
	defer wrap(&err, "get")
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rt, place, err := p.takeOrWait()
	if place == nil {
		return rt, err
	}
	select {
	case out := <-place:
		return out.runtime, out.err
	case <-ctx.Done():
	}
	if p.withdraw(place) {
		return nil, context.Cause(ctx)
	}
	out := <-place // it arrived at the same moment, and must not be lost
	return out.runtime, out.err
}

// takeOrWait returns a ready runtime, or else a place in the queue.
func (p *Pool) takeOrWait() (*NodeRuntime, chan outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	defer p.refill()
	for len(p.ready) > 0 {
		rt := p.ready[0].runtime
		p.ready = slices.Delete(p.ready, 0, 1)
		if p.alive(rt) { // its jail may have died since replace looked
			return rt, nil, nil
		}
		p.discard(rt)
	}
	place := make(chan outcome, 1)
	p.waiting = append(p.waiting, place)
	return nil, place, nil
}

// withdraw gives up a place in the queue. It returns false if the place's turn has come.
func (p *Pool) withdraw(place chan outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, place)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	return true
}

// Close closes the runtimes that no Get has returned, and makes waiting Gets return
// [ErrClosed]. It returns when nothing of the pool is left, except for the zygotes, which
// stay until [CloseIdle]. Further calls return the error of the first.
func (p *Pool) Close() error {
	p.close.Do(func() {
		p.mu.Lock()
		p.closed = true
		for _, place := range p.waiting {
			place <- outcome{err: ErrClosed}
		}
		for _, r := range p.ready {
			p.discard(r.runtime)
		}
		p.waiting, p.ready = nil, nil
		p.timer.Stop()
		p.mu.Unlock()
		p.cancel()
		p.work.Wait()
	})
	return p.failed
}
