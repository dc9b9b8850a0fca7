package runtime

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrPaused is the error of methods that need a process of a paused runtime.
var ErrPaused = errors.New("runtime is paused")

// pausing is the state of Pause and Resume.
type pausing struct {
	turn   *semaphore.Weighted // of Pause and Resume
	starts *semaphore.Weighted // a starting process holds 1, and a paused runtime allStarts

	mu     sync.Mutex
	paused bool
	limits map[*timeLimit]struct{} // of active runs and cells
}

const allStarts = 1 << 30

// Pause stops all processes of the runtime until Resume, and returns when they have stopped. If ctx ends first, they continue.
// Pausing a paused runtime does nothing.
//
// While the runtime is paused, methods that start a process or a cell fail with [ErrPaused]. FS, Snapshot and Close work as
// before, and runs can be killed and canceled; canceling a cell ends its context. Timeouts of runs and cells exclude the
// pause. ContextOptions.IdleTimeout and the timeouts of host functions and connections include it.
//
// On cgroup v1, killing the host process does not end paused processes. The next process that calls [Create] ends them.
func (rt *NodeRuntime) Pause(ctx context.Context) (err error) {
	defer wrap(&err, "pause")
	return rt.setPaused(ctx, true)
}

// Resume lets the processes of a paused runtime continue. Otherwise it does nothing.
func (rt *NodeRuntime) Resume(ctx context.Context) (err error) {
	defer wrap(&err, "resume")
	return rt.setPaused(ctx, false)
}

// Paused reports whether the runtime is paused. A closed one is not.
func (rt *NodeRuntime) Paused() bool {
	rt.pausing.mu.Lock()
	defer rt.pausing.mu.Unlock()
	return rt.pausing.paused && rt.alive.Err() == nil
}

func (rt *NodeRuntime) setPaused(ctx context.Context, paused bool) error {
	if err := rt.opts.Isolation.Check(FeaturePause); err != nil {
		return err
	}
	ctx, done, err := rt.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	p := &rt.pausing
	if p.turn.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer p.turn.Release(1)
	switch {
	case paused == rt.Paused():
		return nil
	case !paused:
		return rt.orEnded(rt.resume(ctx))
	case p.starts.Acquire(ctx, allStarts) != nil:
		return context.Cause(ctx)
	}
	p.set(true)
	if err = rt.sandbox.SetPaused(ctx, true); err != nil {
		err = errors.Join(rt.orEnded(err), rt.resume(rt.alive))
	}
	return err
}

// resume lets the processes continue.
//
// Preconditions: the caller holds the turn, and the runtime all starts.
func (rt *NodeRuntime) resume(ctx context.Context) error {
	err := rt.sandbox.SetPaused(ctx, false)
	if err == nil {
		rt.pausing.set(false)
		rt.pausing.starts.Release(allStarts)
	}
	return err
}

// set stops or continues the time of all limits.
func (p *pausing) set(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	for l := range p.limits {
		if paused {
			l.timer.Stop()
			l.left = time.Until(l.end)
		} else {
			l.end = time.Now().Add(l.left)
			l.timer.Reset(l.left)
		}
	}
}

// timeLimit is a context that ends with errTimeout after a time in which its runtime is not paused.
type timeLimit struct {
	context.Context
	of    *pausing
	timer *time.Timer
	end   time.Time     // unless the runtime is paused
	left  time.Duration // from the end of the pause
}

// withTimeout bounds a run, its start included, or a cell. Pauses do not count.
func (p *pausing) withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout < 0 {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	left := cmp.Or(timeout, DefaultTimeout)
	l := &timeLimit{Context: ctx, of: p, left: left, end: time.Now().Add(left), timer: time.AfterFunc(left, func() { cancel(errTimeout) })}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limits == nil {
		p.limits = map[*timeLimit]struct{}{}
	}
	if p.limits[l] = struct{}{}; p.paused {
		l.timer.Stop()
	}
	context.AfterFunc(ctx, l.remove)
	return l, func() { cancel(nil) }
}

func (l *timeLimit) remove() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.timer.Stop()
	delete(l.of.limits, l)
}

// Deadline implements [context.Context]. A pause defers it.
func (l *timeLimit) Deadline() (time.Time, bool) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	end := l.end
	if l.of.paused {
		end = time.Now().Add(l.left)
	}
	if earlier, ok := l.Context.Deadline(); ok && earlier.Before(end) {
		return earlier, true
	}
	return end, true
}
