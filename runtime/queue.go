package runtime

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"
)

// A run waits for its turn twice, so that callers may request any number at once:
//
//	requested ── wait ── runtime's queue ───── wait ── process's starts ── end
//	                     MaxConcurrentRuns,            maxStarts, while
//	                     until the run's end           the run starts
//
// A run needs most of its descriptors and CPU time while it starts, so the process limits
// starts. It does not limit active runs, because those of one runtime, which may only be
// waiting, could then block all others.
//
// A run that has the first turn waits only for runs that are starting, for startLease at
// most. So runs of one runtime that fit into its queue together can wait for each other.

const (
	defaultConcurrentRuns = 64
	maxConcurrentRuns     = 8192 // each holds some ten descriptors of the host

	// startLease is how long a start can block others. It takes some 10 to 50 ms, but a guest
	// can delay starts in its own jail.
	startLease = 100 * time.Millisecond
)

// maxStarts keeps the processors busy: a start uses about one.
var maxStarts = max(4, 2*goruntime.GOMAXPROCS(0))

// starts limits the starts of this process.
var starts = make(queue, maxStarts)

// queue is a semaphore that serves callers in order.
type queue chan struct{}

// enter waits for a place. It returns false if ctx ends or closing is closed first.
// Otherwise the caller must call leave.
func (q queue) enter(ctx context.Context, closing <-chan struct{}) bool {
	select {
	case q <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-closing:
	}
	return false
}

func (q queue) leave() { <-q }

// leaveAfter leaves after d, or when the returned function is called.
func (q queue) leaveAfter(d time.Duration) (leave func()) {
	once := sync.OnceFunc(q.leave)
	late := time.AfterFunc(d, once)
	return func() {
		late.Stop()
		once()
	}
}

// inTurn calls perform when the run's turn has come.
func (rt *NodeRuntime) inTurn(ctx context.Context, perform func(started func()) (*Result, error)) (*Result, error) {
	requested := time.Now()
	started, ok := rt.takeTurn(ctx)
	if !ok {
		// Only its context or its runtime can end a run before its turn.
		return &Result{
			ExitCode: killedCode, Signal: killedSignal, Cause: CauseCanceled,
			Queued: time.Since(requested), Launcher: rt.opts.launcher,
		}, rt.cancellation(ctx)
	}
	defer rt.queue.leave()
	defer started()
	queued := time.Since(requested)
	res, err := perform(started)
	if res != nil {
		res.Queued = queued
	}
	return res, err
}

// takeTurn waits for a run's turn. It returns false if the turn did not come. Otherwise the
// caller must call started when the run has started, and leave the runtime's queue at its
// end.
func (rt *NodeRuntime) takeTurn(ctx context.Context) (started func(), ok bool) {
	if !rt.queue.enter(ctx, rt.closing) {
		return nil, false
	}
	if !starts.enter(ctx, rt.closing) {
		rt.queue.leave()
		return nil, false
	}
	return starts.leaveAfter(startLease), true
}
