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
)

const (
	slotSuffix  = ".slot"
	killTimeout = 10 * time.Second // for the processes of one jail to be gone
)

// swept tells which state folders this process has swept.
var swept struct {
	sync.Mutex
	dirs map[string]bool
}

// sweepOnce sweeps a folder unless this process has done so. What can't be cleared
// takes a place and does no other harm.
func sweepOnce(stateDir string) {
	swept.Lock()
	defer swept.Unlock()
	if swept.dirs[stateDir] {
		return
	}
	if swept.dirs == nil {
		swept.dirs = map[string]bool{}
	}
	// Another try is worth it for want of something that comes back, but not for
	// a process that can't be killed, which takes its time each time.
	err := Sweep(stateDir)
	swept.dirs[stateDir] = !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) && !errors.Is(err, unix.ENOMEM)
}

// sweepAgain has the next Create clear what this process could not.
func sweepAgain(stateDir string) {
	swept.Lock()
	defer swept.Unlock()
	delete(swept.dirs, stateDir)
}

// Sweep clears what dead host processes left in the state folder and in the
// cgroups. Create does so once in each process, and again after a jail that could
// not be cleared away, as for want of file descriptors.
func Sweep(stateDir string) error {
	dir := jailsDir(stateDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return stepError("sweep", dir, err)
	}
	var failed error
	for _, e := range entries {
		number, isSlot := strings.CutSuffix(e.Name(), slotSuffix)
		n, err := strconv.Atoi(number)
		if !isSlot || err != nil {
			continue
		}
		failed = errors.Join(failed, stepError("sweep", e.Name(), sweepSlot(dir, n)))
	}
	return failed
}

func sweepSlot(dir string, n int) error {
	s, err := lockSlot(dir, n, 0)
	if err != nil || s == nil {
		return err
	}
	if err := s.clear(); err != nil {
		return errors.Join(err, s.file.Close())
	}
	return s.release()
}

// clear ends what is left of a jail whose host died and removes its traces.
func (s *slot) clear() error {
	c, err := s.read()
	if err != nil || c == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return clearGroup(ctx, path.Join(c.CgroupParent, s.name()))
}

// clearGroup ends what is in a jail's group, and removes it and those of its runs.
func clearGroup(ctx context.Context, path string) error {
	group, err := cgroup.Open(path)
	if err != nil {
		return err
	}
	if err := group.Kill(ctx); err != nil {
		return err
	}
	return group.Delete()
}
