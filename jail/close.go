package jail

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
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
		failed = stepError("kill", "pid 1", ignoreGone(j.pid1.Signal(unix.SIGKILL)))
		_, _ = j.pid1.Wait() // that it was killed is no news
	}
	j.closeForks()
	close(j.keeper)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	dir := jailsDir(j.spec.StateDir)
	failed = errors.Join(failed,
		stepError("kill", j.slot.name(), killGroup(ctx, j.groupPath(""))),
		stepError("remove", "cgroups", removeCgroups(j.spec.CgroupParent, j.slot.name())),
		stepError("remove", "state", os.RemoveAll(filepath.Join(dir, j.slot.name()))),
	)
	if failed != nil {
		// The claim stays, unlocked, for a sweep to clear.
		sweepAgain(j.spec.StateDir)
		return errors.Join(failed, j.slot.file.Close())
	}
	return stepError("release", j.slot.name(), j.slot.release())
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
