package runtime

import (
	"slices"
	"time"
)

// refill starts to create the missing runtimes: up to Size, and one for each waiting Get.
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
		p.recordFailure(err)
	} else {
		p.failures, p.retry = 0, time.Time{}
		p.add(rt)
	}
	p.timer.Reset(0) // to create the next one, or to wait
}

// add passes a new runtime to the Get that has waited longest, or keeps it.
//
// Preconditions: p.mu is held.
func (p *Pool) add(rt *NodeRuntime) {
	switch {
	case len(p.waiting) > 0:
		p.wakeFirst(outcome{runtime: rt})
	case p.closed || len(p.ready) == p.options.Size: // the Get that requested it was canceled
		p.discard(rt)
	default:
		p.ready = append(p.ready, idleRuntime{rt, time.Now()})
	}
}

// Without waiting callers a pool retries failed creations after a delay, which doubles with
// each failure.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// recordFailure handles a failed creation. It fails one Get only, because each would have
// had to create its own runtime.
//
// Preconditions: p.mu is held.
func (p *Pool) recordFailure(err error) {
	delay := min(firstRetry<<min(p.failures, 10), lastRetry)
	p.failures++
	p.retry = time.Now().Add(delay)
	if len(p.waiting) > 0 {
		p.wakeFirst(outcome{err: err})
	}
}

// wakeFirst wakes the Get that has waited longest.
//
// Preconditions: p.mu is held, and a Get waits.
func (p *Pool) wakeFirst(out outcome) {
	p.waiting[0] <- out
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// discard closes a runtime in the background.
//
// Preconditions: p.mu is held, and Close has not returned.
func (p *Pool) discard(rt *NodeRuntime) {
	p.work.Go(func() {
		p.closers <- struct{}{}
		err := p.closeRuntime(rt)
		<-p.closers
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.failed == nil {
			p.failed = err
		}
	})
}

// checkInterval is how soon a runtime that died is replaced if no Get finds it.
const checkInterval = 5 * time.Second

// replace discards dead and old runtimes, starts to create new ones, and sets the timer for the next
// time.
func (p *Pool) replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.ready = slices.DeleteFunc(p.ready, func(r idleRuntime) bool {
		alive := p.alive(r.runtime)
		if !alive {
			p.discard(r.runtime)
		}
		return !alive
	})
	next := checkInterval
	// One at a time, so that the pool stays nearly full.
	if maxAge := p.options.MaxAge; maxAge > 0 && len(p.ready) == p.options.Size {
		left := maxAge - time.Since(p.ready[0].since)
		if left <= 0 {
			p.discard(p.ready[0].runtime)
			p.ready = slices.Delete(p.ready, 0, 1)
		} else {
			next = min(next, left)
		}
	}
	p.refill()
	if wait := time.Until(p.retry); wait > 0 {
		next = min(next, wait)
	}
	p.timer.Reset(next)
}
