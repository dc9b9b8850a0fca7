package jail

import (
	"context"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/step"
)

const (
	slotSuffix  = ".slot"
	killTimeout = 10 * time.Second // for the processes of one jail to be gone
)

// swept has the state folders that this process has swept. A folder is removed from it when
// the process fails to remove a jail: the next Create then sweeps again.
var swept sync.Map

// sweepOnce sweeps a folder unless this process has done so. A jail that can't be removed
// occupies a slot and does no other harm.
func sweepOnce(stateDir string) {
	if _, done := swept.LoadOrStore(stateDir, true); done {
		return
	}
	// Try again after a shortage that may be temporary, but not for a process that can't be
	// killed: each try waits for the timeout.
	if err := sweep(stateDir); errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) {
		swept.Delete(stateDir)
	}
}

// sweep removes what dead host processes left in the state folder and in the cgroups.
func sweep(stateDir string) error {
	dir := jailsDir(stateDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return step.Wrap("sweep", dir, err)
	}
	var failed error
	for _, e := range entries {
		number, isSlot := strings.CutSuffix(e.Name(), slotSuffix)
		n, err := strconv.Atoi(number)
		if !isSlot || err != nil {
			continue
		}
		failed = errors.Join(failed, step.Wrap("sweep", e.Name(), sweepSlot(dir, n)))
	}
	return failed
}

func sweepSlot(dir string, n int) error {
	s, err := lockSlot(dir, n, 0)
	if err != nil || s == nil {
		return err
	}
	if err := s.removeJail(); err != nil {
		return errors.Join(err, s.file.Close())
	}
	return s.release()
}

// removeJail removes the rest of a jail after its host process died.
func (s *slot) removeJail() error {
	c, err := s.read()
	if err != nil || c == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return removeCgroup(ctx, path.Join(c.CgroupParent, s.name()))
}

// removeCgroup kills all processes in a jail's cgroup, and removes it and those of its runs.
func removeCgroup(ctx context.Context, path string) error {
	group, err := cgroup.Open(path)
	if err != nil {
		return err
	}
	if err := group.Kill(ctx); err != nil {
		return err
	}
	return group.Delete()
}
