package runtime

import (
	"context"
	"time"

	"gaol/jail"
)

// watch ends a run that goes over a limit which the kernel does not hold by
// itself.
type watch struct {
	process *jail.Process
	limits  Limits
	full    <-chan struct{} // closed when a stream is full and that is to end the run
	closing <-chan struct{} // closed when the runtime closes
	killed  <-chan struct{} // closed when the caller wants the run ended
}

// until waits for the end of the run, and kills it if it must. It says why it
// did. limit is withTimeout's.
func (w *watch) until(limit context.Context) Cause {
	spent, stop := w.cpuSpent()
	defer stop()
	cause := CauseNone
	select {
	case <-w.process.Done():
		// The limit may have killed it while it was being started.
		if limit.Err() == nil {
			return CauseNone
		}
		return endCause(limit)
	case <-spent:
		cause = CauseCPU
	case <-w.full:
		cause = CauseOutput
	case <-limit.Done():
		cause = endCause(limit)
	case <-w.closing:
		cause = CauseCanceled
	case <-w.killed:
		cause = CauseCanceled
	}
	w.process.Kill()
	return cause
}

// cpuSpent returns a channel that is closed when the run has used its processor
// time, to within a few milliseconds. The kernel can only limit that time for
// single processes.
func (w *watch) cpuSpent() (spent <-chan struct{}, stop func()) {
	limit := w.limits.CPUTime
	if limit == 0 {
		return nil, func() {}
	}
	done, end := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			used, err := w.process.CPU()
			if err == nil && used >= limit {
				close(done)
				return
			}
			select {
			case <-end:
				return
			case <-time.After(w.nextLook(limit - used)):
			}
		}
	}()
	return done, func() { close(end) }
}

// nextLook is how long the run can't have used up the time that is left.
func (w *watch) nextLook(left time.Duration) time.Duration {
	const least = 2 * time.Millisecond
	return max(time.Duration(float64(left)/w.limits.CPUs), least)
}
