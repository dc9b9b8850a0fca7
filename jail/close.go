package jail

import (
	"context"
	"errors"
	"time"

	"gaol/jail/step"
)

// Close kills all processes of the jail and removes the jail. It returns when nothing is
// left. Later calls return nil.
func (j *Jail) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	for p := range j.live {
		p.Kill()
	}
	j.mu.Unlock()
	// A killed pid 1 waits until every process of its namespace is reaped, and the parent
	// of the runs is the host.
	j.runs.Wait()
	return j.remove()
}

// remove removes what Create has made so far.
func (j *Jail) remove() error {
	var failed error
	if j.pid1 != nil {
		failed = step.Wrap("kill", "pid 1", j.pid1.Kill())
		failed = errors.Join(failed, step.Wrap("wait", "pid 1", j.waitPid1()))
	}
	j.program.Close() // these may be nil
	j.pidfd.Close()
	if j.shared != nil {
		j.shared.close()
	}
	close(j.release)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	failed = errors.Join(failed, step.Wrap("clear", j.slot.name(), removeCgroup(ctx, j.cgroupPath(""))))
	if failed != nil {
		swept.Delete(j.spec.StateDir) // the claim stays, unlocked, for a sweep
		return errors.Join(failed, j.slot.file.Close())
	}
	return step.Wrap("release", j.slot.name(), j.slot.release())
}

var errNotReaped = errors.New("a process of the jail has ended and is not reaped")

// waitPid1 waits for the killed pid 1 to end, with a timeout: pid 1 can't end before all
// processes of its namespace are reaped, and their parents are outside of it.
func (j *Jail) waitPid1() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = j.pid1.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(killTimeout):
		return errNotReaped
	}
}
