package runtime

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"gaol/jail"
)

// live is a run from its start to its end, whether it is waited for or spawned.
type live struct {
	rt      *NodeRuntime
	task    *task
	began   time.Time
	streams *streams
	process *jail.Process
	denials *denials
	audited func()

	kill   sync.Once
	killed chan struct{} // closed when the caller wants it ended
}

// begin starts a run, which finish then has to take to its end. limit bounds the start.
func (rt *NodeRuntime) begin(limit context.Context, t *task, e ends) (*live, error) {
	l := &live{rt: rt, task: t, began: time.Now(), killed: make(chan struct{})}
	if err := l.start(limit, e); err != nil {
		l.close()
		return nil, err
	}
	l.audited = rt.listen(l.process.PID(), l.denials)
	rt.live.add(l) // before anything of it can call Processes
	l.streams.pump()
	return l, nil
}

func (l *live) start(limit context.Context, e ends) (err error) {
	rt, t := l.rt, l.task
	if l.streams, err = openStreams(limit, t, e); err != nil {
		return err
	}
	if t.guard != nil {
		if err := t.guard.restrict(rt.jail, rt.opts.degraded); err != nil {
			return err
		}
	}
	c := rt.command(t)
	l.denials = t.newDenials(cmp.Or(t.guard, rt.guard))
	if t.feed != nil {
		l.follow(t.feed)
	}
	c.Refused = l.denials.refused
	l.process, err = l.streams.start(limit, rt.jail, c)
	return err
}

// follow has a feed told of what is no output: first of what there was already. At the
// run's end it waits for nobody.
func (l *live) follow(f *feed) {
	l.streams.feed.Store(f)
	l.denials.follow(f)
	if c := l.streams.control; c != nil && c.calls != nil {
		c.calls.follow(f)
	}
	if l.process != nil && l.hasEnded() { // drain may not have seen it
		f.over()
	}
}

// close gives back what a run holds.
func (l *live) close() {
	l.task.guard.close()
	if l.streams != nil {
		l.streams.close()
	}
}

// finish takes the run to its end, and says what came of it. full may be nil. With
// CauseCanceled there may be an error beside the result: see cancellation.
func (l *live) finish(limit context.Context, full <-chan struct{}) (*Result, error) {
	defer l.close()
	defer l.rt.live.remove(l)
	w := &watch{process: l.process, limits: l.task.limits, full: full, closing: l.rt.closing, killed: l.killed}
	cause := w.until(limit)
	exit, err := l.process.Wait()
	took := time.Since(l.began)
	l.streams.drain()
	l.audited()
	res, stderrTail, failed := l.streams.result()
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	res.Duration = took
	conclude(res, cause, exit, stderrTail)
	res.Launcher, res.LauncherReason = l.task.launcher(l.rt.opts.launcher)
	if res.Cause == CauseNone && isClosed(full) { // it was over before it could be killed
		res.Cause = CauseOutput
	}
	res.Denials, res.Truncated.Denials = l.denials.list(res, stderrTail)
	if res.Cause == CauseCanceled && (limit.Err() != nil || !isClosed(l.killed)) {
		return res, l.rt.cancellation(limit)
	}
	return res, nil
}

// end has the run end with CauseCanceled. It does not wait.
func (l *live) end() { l.kill.Do(func() { close(l.killed) }) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// notStarted is what comes of a run that was ended before its program began.
func (rt *NodeRuntime) notStarted(limit context.Context, t *task, began time.Time, err error) (*Result, error) {
	res := &Result{ExitCode: killedCode, Signal: killedSignal, Duration: time.Since(began)}
	res.Launcher, res.LauncherReason = t.launcher(rt.opts.launcher)
	switch {
	case limit.Err() != nil:
		res.Cause = endCause(limit)
	case isClosed(rt.closing): // what then fails is no news
		res.Cause = CauseCanceled
	default:
		return nil, err
	}
	if res.Cause == CauseCanceled {
		return res, rt.cancellation(limit)
	}
	return res, nil
}
