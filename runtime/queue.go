package runtime

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"
)

// A run waits for its turn twice, so that any number may be asked for at once:
//
//	asked ── wait ── one of the runtime's ── wait ── one of the process's ── end
//	                 MaxConcurrentRuns:              maxStarts:
//	                 held to the run's end           held while it starts
//
// What a run needs most of, descriptors and processor time, it needs while it
// starts. That is what the process bounds. It does not bound live runs: those of
// one runtime, which only wait, could keep all others out.
//
// Who has the first waits for nobody but who is starting, and that takes startLease
// at most: runs of a runtime that fit into it together can wait for each other.

const (
	defaultConcurrentRuns = 64
	mostConcurrentRuns    = 8192 // each holds some ten descriptors of the host's

	// startLease is how long a start can keep others waiting. It takes some 10 to
	// 50 ms; a guest may hold up those in its own jail for as long as it likes.
	startLease = 100 * time.Millisecond
)

// maxStarts keeps the processors busy, of which a start uses about one.
var maxStarts = max(4, 2*goruntime.GOMAXPROCS(0))

// starts are the process's.
var starts = make(queue, maxStarts)

// queue lets as many in as it has room, in the order in which they came.
type queue chan struct{}

// enter waits for its turn. It reports whether that came before ctx ended or
// closing was closed. The caller then has to leave.
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

// leaseOut has who has entered leave when the returned function is first called,
// or after d.
func (q queue) leaseOut(d time.Duration) (leave func()) {
	once := sync.OnceFunc(q.leave)
	late := time.AfterFunc(d, once)
	return func() {
		late.Stop()
		once()
	}
}

// inTurn performs a run when its turn has come.
func (rt *NodeRuntime) inTurn(ctx context.Context, perform func(started func()) (*Result, error)) (*Result, error) {
	asked := time.Now()
	started, ok := rt.takeTurn(ctx)
	if !ok {
		res := neverStarted(asked)
		res.Launcher = rt.opts.launcher
		return res, rt.cancellation(ctx)
	}
	defer rt.queue.leave()
	defer started()
	queued := time.Since(asked)
	res, err := perform(started)
	if res != nil {
		res.Queued = queued
	}
	return res, err
}

// takeTurn waits for a run's turn. It reports whether that came; the caller then calls
// started when the run has started, and has to leave the runtime's queue at its end.
func (rt *NodeRuntime) takeTurn(ctx context.Context) (started func(), ok bool) {
	if !rt.queue.enter(ctx, rt.closing) {
		return nil, false
	}
	if !starts.enter(ctx, rt.closing) {
		rt.queue.leave()
		return nil, false
	}
	return starts.leaseOut(startLease), true
}

// neverStarted is what comes of a run that ends before its turn: only its context
// or its runtime can do that.
func neverStarted(asked time.Time) *Result {
	return &Result{ExitCode: killedCode, Signal: killedSignal, Cause: CauseCanceled, Queued: time.Since(asked)}
}
