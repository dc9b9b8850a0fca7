package runtime

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// PoolOptions are the options of a [Pool]. A zero field takes its default.
type PoolOptions struct {
	// Size is how many unused runtimes are kept. Each takes a process of 0.3 MB, a thread of the
	// host process and 9 file descriptors. Default 4; at most 1,024.
	Size int `bounds:"1..1024,4"` // a quarter of the jails that a machine has room for

	// Parallel is how many runtimes are created concurrently. Creating one takes a fifth of Node's
	// start, and competes with the callers' runs for processors. Default 1; at most 64. More
	// than Size has no effect.
	Parallel int `bounds:"1..64,1"`

	// MaxAge is how long a runtime may stay unused. Older ones are replaced, so that an idle
	// pool follows a change of its image. While creation fails, the old ones stay. Default 10 minutes; at least a second. Negative: no limit.
	MaxAge time.Duration

	// Park also forks the process of each runtime's first run in advance: it waits for its
	// program inside the jail, under the run's limits. Each uses some 2 MB. It requires
	// LauncherZygote, which IsolationOCI lacks: otherwise NewPool returns ErrUnsupported.
	Park bool
}

func (o PoolOptions) resolve() (PoolOptions, error) {
	if o.MaxAge = cmp.Or(o.MaxAge, 10*time.Minute); o.MaxAge > 0 && o.MaxAge < time.Second {
		return o, optionError("MaxAge", "%v is shorter than a second", o.MaxAge)
	}
	err := fill(&o, true)
	return o, err
}

// Pool keeps unused runtimes ready, all with the same options. Use a pool when you cannot
// wait for Create. It is safe for concurrent use.
//
//	create ──> ready ── Get ──> owned by the caller, which closes it
//	             └── dead or too old: closed and replaced
//
// A goroutine for each runtime creates it and offers it to Gets. Channels serve Gets in order, and
// give them the oldest runtime first.
type Pool struct {
	options PoolOptions

	// Tests replace these.
	create       func(context.Context) (*NodeRuntime, error)
	alive        func(*NodeRuntime) bool
	closeRuntime func(*NodeRuntime) error

	open     context.Context // ends when Close begins
	cancel   context.CancelFunc
	work     sync.WaitGroup // of all goroutines
	creating chan struct{}  // a semaphore of Parallel
	closing  chan struct{}  // a semaphore for closing runtimes

	ready  chan *NodeRuntime // to Gets
	errors chan error        // of creations, to Gets
	wanted chan struct{}     // from a waiting Get: a failed creation is tried again

	mu  sync.Mutex
	err error // the first error of closing a runtime that no Get returned
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
	if err := s.Isolation.Check(FeaturePark); p.Park && err != nil {
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
	p := &Pool{
		options: o, create: create, creating: make(chan struct{}, o.Parallel), closing: make(chan struct{}, closers),
		ready: make(chan *NodeRuntime), errors: make(chan error), wanted: make(chan struct{}),
	}
	p.open, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *Pool) start() {
	for range p.options.Size {
		p.work.Go(func() { // creates runtimes, one after another, and offers each until it is taken
			for rt := p.next(); rt != nil; rt = p.next() {
				p.offer(rt)
			}
		})
	}
}

// Without waiting callers a pool retries failed creations after a delay, which doubles with
// each failure.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// next creates a runtime. It returns nil if the pool is closed. An error fails one Get only, because
// each would have had to create its own runtime.
func (p *Pool) next() *NodeRuntime {
	select {
	case p.creating <- struct{}{}:
	case <-p.open.Done():
		return nil
	}
	defer func() { <-p.creating }() // also during the delay: others would fail, too
	for delay := firstRetry; ; delay = min(2*delay, lastRetry) {
		rt, err := p.create(p.open)
		if err == nil {
			return rt
		}
		if p.open.Err() != nil {
			return nil
		}
		select {
		case p.errors <- err:
		default: // no Get waits
		}
		select {
		case <-time.After(delay):
		case <-p.wanted:
		case <-p.open.Done():
			return nil
		}
	}
}

// checkInterval is how soon a runtime that died is replaced if no Get finds it.
const checkInterval = 5 * time.Second

// offer offers a runtime to Gets until one takes it, it dies, or the pool is closed. Once it is too
// old, it is replaced, if a new one can be created.
func (p *Pool) offer(rt *NodeRuntime) {
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for born := time.Now(); ; {
		select {
		case p.ready <- rt:
			return
		case <-p.open.Done():
			p.discard(rt)
			return
		case <-check.C:
		}
		if !p.alive(rt) {
			p.discard(rt)
			return
		}
		if p.options.MaxAge < 0 || time.Since(born) < p.options.MaxAge {
			continue
		}
		select {
		case p.creating <- struct{}{}:
		default: // rt is offered meanwhile
			continue
		}
		newer, err := p.create(p.open)
		<-p.creating
		if err != nil {
			born = born.Add(lastRetry)
			continue
		}
		p.discard(rt)
		rt, born = newer, time.Now()
	}
}

// discard closes a runtime.
func (p *Pool) discard(rt *NodeRuntime) {
	p.closing <- struct{}{}
	err := p.closeRuntime(rt)
	<-p.closing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = cmp.Or(p.err, err)
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
	for {
		switch { // before select, which would choose at random
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case p.open.Err() != nil:
			return nil, ErrClosed
		}
		select {
		case rt := <-p.ready:
			if p.alive(rt) { // its jail may have died since the last check
				return rt, nil
			}
			p.discard(rt)
		case err := <-p.errors:
			return nil, err
		case p.wanted <- struct{}{}:
		case <-ctx.Done():
		case <-p.open.Done():
		}
	}
}

// Close closes the runtimes that no Get has returned, and makes waiting Gets return
// [ErrClosed]. It returns when nothing of the pool is left, except for the zygotes, which
// stay until [CloseIdle]. Further calls return the error of the first.
func (p *Pool) Close() error {
	p.cancel()
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
