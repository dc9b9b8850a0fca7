package runtime

import (
	"slices"
	"time"
)

// refill begins to create what the pool lacks: as many as are to be ready, and one
// for each Get that waits.
//
// Preconditions: p.mu is held.
func (p *Pool) refill() {
	if p.closed || len(p.waiting) == 0 && time.Now().Before(p.retry) {
		return
	}
	for p.creating < p.options.Parallel && len(p.ready)+p.creating < p.options.Size+len(p.waiting) {
		p.creating++
		p.work.Go(p.createOne)
	}
}

func (p *Pool) createOne() {
	rt, err := p.create(p.open)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.creating--
	if err != nil {
		p.fail(err)
	} else {
		p.failures, p.retry = 0, time.Time{}
		p.put(rt)
	}
	p.refill()
	select {
	case p.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// put hands a new runtime to the Get that waits longest, or parks it.
//
// Preconditions: p.mu is held.
func (p *Pool) put(rt *NodeRuntime) {
	switch {
	case len(p.waiting) > 0:
		p.answer(outcome{runtime: rt})
	case p.closed || len(p.ready) == p.options.Size: // who it was for has given up
		p.drop(rt)
	default:
		p.ready = append(p.ready, parked{rt, time.Now()})
	}
}

// How long a pool that nobody waits for leaves creation alone after a failure: twice
// as long after each.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// fail takes in that a runtime could not be created. One failure is one Get's: each
// would have had to create its own.
//
// Preconditions: p.mu is held.
func (p *Pool) fail(err error) {
	delay := lastRetry
	if doublings := p.failures; doublings < 10 {
		delay = min(firstRetry<<doublings, lastRetry)
	}
	p.failures++
	p.retry = time.Now().Add(delay)
	if len(p.waiting) > 0 {
		p.answer(outcome{err: err})
	}
}

// answer gives the Get that waits longest what it waits for.
//
// Preconditions: p.mu is held, and somebody waits.
func (p *Pool) answer(out outcome) {
	p.waiting[0] <- out
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// drop closes a runtime in the background.
//
// Preconditions: p.mu is held, and Close has not returned.
func (p *Pool) drop(rt *NodeRuntime) {
	p.work.Go(func() {
		p.enders <- struct{}{}
		err := p.end(rt)
		<-p.enders
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.failed == nil {
			p.failed = err
		}
	})
}

// tend looks after what is parked until the pool is closed.
func (p *Pool) tend() {
	for {
		look := time.NewTimer(p.tidy())
		select {
		case <-p.open.Done():
			look.Stop()
			return
		case <-p.wake:
			look.Stop()
		case <-look.C:
		}
	}
}

// lookEvery is how soon a runtime that died is replaced if nobody asks for it.
const lookEvery = 5 * time.Second

// tidy drops what is dead and what is old, has it replaced, and returns how long
// that will do.
func (p *Pool) tidy() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = slices.DeleteFunc(p.ready, func(r parked) bool {
		alive := p.alive(r.runtime)
		if !alive {
			p.drop(r.runtime)
		}
		return !alive
	})
	next := lookEvery
	// One at a time, so that the pool stays nearly full.
	if maxAge := p.options.MaxAge; maxAge > 0 && len(p.ready) == p.options.Size {
		left := maxAge - time.Since(p.ready[0].since)
		if left <= 0 {
			p.drop(p.ready[0].runtime)
			p.ready = slices.Delete(p.ready, 0, 1)
		} else {
			next = min(next, left)
		}
	}
	p.refill()
	if wait := time.Until(p.retry); wait > 0 {
		next = min(next, wait)
	}
	return next
}
