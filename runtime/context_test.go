package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// A process that closes its channel and then exits slowly has not been killed.
func TestContextSlowEnd(t *testing.T) {
	exited := &ExitError{3}
	for _, tc := range []struct {
		res  *Result
		want string
	}{
		{&Result{ExitCode: 3}, exited.Error()},
		{&Result{Cause: CauseMemory, Signal: killedSignal}, "it exceeded its memory limit"},
		{&Result{Cause: CauseCanceled, Signal: killedSignal}, errSilent.Error()},
		{nil, errSilent.Error()},
	} {
		rt := &NodeRuntime{contexts: semaphore.NewWeighted(1), alive: t.Context()}
		rt.contexts.TryAcquire(1)
		c := &Context{rt: rt, process: &Process{done: make(chan struct{})}, reason: errSilent}
		c.finish(tc.res)
		close(c.process.done)
		if err := c.Err(); !errors.Is(err, ErrContextEnded) || err.Error() != ErrContextEnded.Error()+": "+tc.want {
			t.Errorf("%+v: %v, want %s", tc.res, err, tc.want)
		}
		if reported := c.reasonText() != ""; reported != (tc.want == errSilent.Error()) {
			t.Errorf("%+v: reports %q", tc.res, c.reasonText())
		}
	}
}

// idleContext returns a context that closes after it has not been used for a time.
func idleContext(after time.Duration) *Context {
	p := &Process{done: make(chan struct{})}
	p.limit, p.cancel = context.WithCancelCause(context.Background())
	c := &Context{rt: &NodeRuntime{}, options: ContextOptions{IdleTimeout: after}, process: p, turn: make(chan struct{}, 1)}
	c.idle = time.AfterFunc(time.Hour, c.stopIdle)
	return c
}

// An idle context closes, however short the limit is.
func TestContextIdle(t *testing.T) {
	for range 2000 {
		c := idleContext(1)
		if err := c.acquireTurn(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.leaveTurn()
		select {
		case <-c.process.limit.Done():
		case <-time.After(time.Minute):
			t.Fatal("the context is still open")
		}
	}
}

// A timer that fires just before a cell starts, and is slow, is ignored.
func TestContextIdleLate(t *testing.T) {
	c := idleContext(time.Hour)
	if err := c.acquireTurn(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.leaveTurn()
	c.stopIdle()
	select {
	case <-c.process.limit.Done():
		t.Fatal("the context closed just after it was used")
	default:
	}
	if err := c.acquireTurn(t.Context()); err != nil {
		t.Error(err)
	}
	c.idle.Stop()
}
