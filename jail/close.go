package jail

import (
	"context"
	"errors"
	"os"
	"time"
)

// Close kills what runs in the jail and removes the jail. It returns when
// nothing is left. Closing twice is no error.
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
	// A killed pid 1 waits for every process of its namespace to be reaped,
	// and the runs' parent is the host.
	j.runs.Wait()
	return j.end()
}

// end removes what Create has made so far.
func (j *Jail) end() error {
	var failed error
	if j.pid1 != nil {
		failed = stepError("kill", "pid 1", j.pid1.Kill())
		failed = errors.Join(failed, stepError("wait", "pid 1", j.waitPid1()))
	}
	j.closeFiles()
	close(j.keeper)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	failed = errors.Join(failed, stepError("clear", j.slot.name(), clearGroup(ctx, j.groupPath(""))))
	if failed != nil {
		// The claim stays, unlocked, for a sweep to clear.
		sweepAgain(j.spec.StateDir)
		return errors.Join(failed, j.slot.file.Close())
	}
	return stepError("release", j.slot.name(), j.slot.release())
}

func (j *Jail) closeFiles() {
	for _, f := range []*os.File{j.program, j.pidfd} {
		if f != nil {
			f.Close()
		}
	}
	if j.shared != nil {
		j.shared.close()
	}
}

var errNotReaped = errors.New("a process of the jail is left that nobody waits for")

// waitPid1 waits for the killed pid 1 to end, but not for ever: the kernel has it
// wait for its whole namespace, whose processes came from outside and have to be
// waited for there. How it ended is no news.
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
