package runtime

import (
	"context"
	"time"

	"gaol/jail"
)

// supervisor ends a run that exceeds a limit which the kernel does not enforce.
type supervisor struct {
	process *jail.Process
	limits  Limits
	killed  <-chan struct{} // closed when the caller wants the run to end
	closing <-chan struct{} // closed when the runtime closes

	outputExceeded <-chan struct{} // closed when the output exceeds a limit that ends the run
}

// wait waits for the end of the run, kills it if necessary, and returns why it did. limit is
// withTimeout's.
func (s *supervisor) wait(limit context.Context) Cause {
	spent, stop := s.cpuSpent()
	defer stop()
	cause := CauseNone
	select {
	case <-s.process.Done():
		// The limit may have killed it during its start.
		if limit.Err() == nil {
			return CauseNone
		}
		return endCause(limit)
	case <-spent:
		cause = CauseCPU
	case <-s.outputExceeded:
		cause = CauseOutput
	case <-limit.Done():
		cause = endCause(limit)
	case <-s.closing:
		cause = CauseCanceled
	case <-s.killed:
		cause = CauseCanceled
	}
	s.process.Kill()
	return cause
}

// cpuSpent returns a channel that is closed when the run has used up its CPU time, to within
// a few milliseconds. The kernel limits CPU time only for single processes.
func (s *supervisor) cpuSpent() (spent <-chan struct{}, stop func()) {
	limit := s.limits.CPUTime
	if limit == 0 {
		return nil, func() {}
	}
	done, end := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			used, err := s.process.CPU()
			if err == nil && used >= limit {
				close(done)
				return
			}
			select {
			case <-end:
				return
			case <-time.After(s.earliest(limit - used)):
			}
		}
	}()
	return done, func() { close(end) }
}

// earliest returns the time in which the run cannot use up the CPU time that is left.
func (s *supervisor) earliest(left time.Duration) time.Duration {
	const least = 2 * time.Millisecond
	return max(time.Duration(float64(left)/s.limits.CPUs), least)
}
