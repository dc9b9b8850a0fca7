package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// PoolOptions says what a [Pool] keeps ready. A zero field takes its default.
type PoolOptions struct {
	// Size is how many unused runtimes are kept. Each holds a process of 0.3 MB,
	// a thread of the host process and 9 file descriptors.
	// Default 4; at most 1,024.
	Size int

	// Parallel is how many runtimes are created at once. Creating one takes a
	// fifth of a Node's start, and competes with the callers' runs for
	// processors. Default 1; at most 64.
	Parallel int

	// MaxAge is how long a runtime stays unused: older ones are replaced, one
	// after the other, so that a pool nobody asks follows a change of its image.
	// While none can be created the old ones stay. Default 10 minutes; at least a
	// second. Negative: they stay for ever.
	MaxAge time.Duration

	// Park has the process of each runtime's first run forked ahead as well: it is
	// in its jail, under its limits, and waits for its program. Each takes up some
	// 2 MB. With LauncherZygote only: the other is ErrUnsupported.
	Park bool
}

const (
	defaultPoolSize     = 4
	defaultPoolParallel = 1
	defaultPoolMaxAge   = 10 * time.Minute

	maxPoolSize     = 1024 // a quarter of the jails that a machine has room for
	maxPoolParallel = 64
	minPoolMaxAge   = time.Second
)

func (o PoolOptions) settle() (PoolOptions, error) {
	if o.Size == 0 {
		o.Size = defaultPoolSize
	}
	if o.Parallel == 0 {
		o.Parallel = defaultPoolParallel
	}
	if o.MaxAge == 0 {
		o.MaxAge = defaultPoolMaxAge
	}
	switch {
	case o.Size < 1 || o.Size > maxPoolSize:
		return o, fmt.Errorf("option Size: %d is not between 1 and %d", o.Size, maxPoolSize)
	case o.Parallel < 1 || o.Parallel > maxPoolParallel:
		return o, fmt.Errorf("option Parallel: %d is not between 1 and %d", o.Parallel, maxPoolParallel)
	case o.MaxAge > 0 && o.MaxAge < minPoolMaxAge:
		return o, fmt.Errorf("option MaxAge: %v is shorter than %v", o.MaxAge, minPoolMaxAge)
	}
	return o, nil
}

// Pool keeps runtimes ready that nobody has used, all alike, so that who needs one
// does not wait for its creation. Its methods may be called from several goroutines
// at once.
//
//	create ──> ready ── Get ──> the caller's, who closes it
//	             └── dead, or too old: closed, and replaced
type Pool struct {
	options PoolOptions

	// What a pool does with runtimes.
	create func(context.Context) (*NodeRuntime, error)
	alive  func(*NodeRuntime) bool
	end    func(*NodeRuntime) error

	open   context.Context // ends when Close begins
	cancel context.CancelFunc
	wake   chan struct{}  // has tend look again
	work   sync.WaitGroup // of all goroutines
	enders chan struct{}  // holds one element for each runtime that is being closed

	mu       sync.Mutex
	closed   bool
	ready    []parked       // the oldest first; none while somebody waits
	waiting  []chan outcome // of the Gets, in order; each has room for one element
	creating int
	failures int       // to create, in a row
	retry    time.Time // nothing is created before it, unless somebody waits
	failed   error     // the first of closing what was not handed out

	close sync.Once
}

// parked is a runtime that waits for its user.
type parked struct {
	runtime *NodeRuntime
	since   time.Time
}

// outcome is what a waiting Get is sent.
type outcome struct {
	runtime *NodeRuntime
	err     error
}

// NewPool makes a pool of runtimes as [Create] makes them of o, and begins to fill
// it in the background. It checks the options, and that this process may make
// jails; what goes wrong later, such as the building of a missing image, is what
// Get returns. Each creation finds the image anew, so that a name's new image is
// used as soon as there is one. o.Progress is written to from the background.
func NewPool(o Options, p PoolOptions) (*Pool, error) {
	s, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("gaol: new pool: %w", err)
	}
	p, err = p.settle()
	if err != nil {
		return nil, fmt.Errorf("gaol: new pool: %w", err)
	}
	if p.Park && s.launcher != LauncherZygote {
		return nil, fmt.Errorf("gaol: new pool: option Park: the launcher is %v: %w", s.launcher, ErrUnsupported)
	}
	o.Env = nil // the caller's to change; s has a copy
	pool := newPool(p, func(ctx context.Context) (*NodeRuntime, error) {
		rt, err := create(ctx, o, s)
		if err == nil && p.Park {
			if err = rt.park(ctx); err != nil {
				return nil, errors.Join(err, rt.Close())
			}
		}
		return rt, err
	})
	pool.alive = (*NodeRuntime).fresh
	pool.end = (*NodeRuntime).Close
	pool.start()
	return pool, nil
}

func newPool(o PoolOptions, create func(context.Context) (*NodeRuntime, error)) *Pool {
	const enders = 4 // closing competes with the callers' runs, too
	p := &Pool{options: o, create: create, wake: make(chan struct{}, 1), enders: make(chan struct{}, enders)}
	p.open, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *Pool) start() { p.work.Go(p.tend) }

// Get hands out a runtime that nobody has used. It is the caller's, who closes it:
// used ones never come back, and the pool's Close does not touch it.
//
// An empty pool has Get wait for the next runtime; Gets that wait are served in
// order. When a creation fails, the first of them returns its error, which is
// Create's, and the others go on waiting for the next attempt. When ctx ends while
// Get waits, the error is ctx's cause; of a closed pool it is [ErrClosed].
func (p *Pool) Get(ctx context.Context) (*NodeRuntime, error) {
	rt, err := p.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("gaol: get: %w", err)
	}
	return rt, nil
}

func (p *Pool) get(ctx context.Context) (*NodeRuntime, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rt, place, err := p.take()
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
	out := <-place // it came at the same moment, and is not to be lost
	return out.runtime, out.err
}

// take returns a ready runtime or else a place in the queue.
func (p *Pool) take() (*NodeRuntime, chan outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	defer p.refill()
	for len(p.ready) > 0 {
		rt := p.ready[0].runtime
		p.ready = slices.Delete(p.ready, 0, 1)
		if p.alive(rt) {
			return rt, nil, nil
		}
		p.drop(rt)
	}
	place := make(chan outcome, 1)
	p.waiting = append(p.waiting, place)
	return nil, place, nil
}

// withdraw gives up a place in the queue. It reports false if the place's turn has
// come before.
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

// Close closes the runtimes that were not handed out, and has those Gets that wait
// return [ErrClosed]. It returns when nothing of the pool is left; what was handed
// out lives on, and the zygotes until [CloseIdle]. Closing twice returns what the
// first Close did.
func (p *Pool) Close() error {
	p.close.Do(func() {
		p.mu.Lock()
		p.closed = true
		for _, place := range p.waiting {
			place <- outcome{err: ErrClosed}
		}
		for _, r := range p.ready {
			p.drop(r.runtime)
		}
		p.waiting, p.ready = nil, nil
		p.mu.Unlock()
		p.cancel()
		p.work.Wait()
	})
	return p.failed
}
