package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill kills every process in the group and its descendants, stopped or frozen
// ones included, and returns when none is left, or when ctx ends. Killed
// processes whose parent has not yet waited for them do not count as left.
func (g *Group) Kill(ctx context.Context) error {
	wait := backoff{least: 50 * time.Microsecond, most: 4 * time.Millisecond}
	var last error
	for n := 0; ; n++ {
		// A failed attempt is repeated: what it failed on may be just dying.
		empty := false
		err := g.use(func() (err error) {
			empty, err = g.on.kill(g.path, n)
			return err
		})
		if empty || errors.Is(err, errEnded) {
			return nil
		}
		if err != nil {
			last = err
		}
		if ctxErr := wait.sleep(ctx); ctxErr != nil {
			return fmt.Errorf("cgroup: kill %s: processes left: %w", g.path, errors.Join(ctxErr, last))
		}
	}
}

// backoff sleeps for longer each time: an exit takes microseconds as a rule, but
// a second where a lot of memory must be given back.
type backoff struct{ least, most time.Duration }

func (b *backoff) sleep(ctx context.Context) error {
	t := time.NewTimer(b.least)
	defer t.Stop()
	b.least = min(2*b.least, b.most)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// killProcs kills the processes in dirs. Between reading a list of pids and the
// signal one may die and its number pass to a stranger. So each is first pinned by
// a pidfd and the list read again: a number still on it is that of the pinned
// process, or of one that is gone.
func killProcs(dirs []string) error {
	pids, err := listProcs(dirs)
	if err != nil {
		return err
	}
	// The rest has its turn in the next attempt; this one must not eat all fds.
	const most = 256
	pinned, err := pin(pids[:min(len(pids), most)])
	defer func() {
		for _, fd := range pinned {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	if pids, err = listProcs(dirs); err != nil {
		return err
	}
	for _, pid := range pids {
		fd, ok := pinned[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	return nil
}

// pin opens a pidfd for each process that still lives. The caller closes them,
// also those that come with an error.
func pin(pids []int) (map[int]int, error) {
	pinned := make(map[int]int, len(pids))
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ESRCH || err == unix.EMFILE && len(pinned) > 0 {
			continue
		}
		if err != nil {
			return pinned, fmt.Errorf("pidfd of %d: %w", pid, err)
		}
		pinned[pid] = fd
	}
	return pinned, nil
}

// listProcs reads the processes in dirs, each once. A directory that is gone
// holds none.
func listProcs(dirs []string) ([]int, error) {
	var pids []int
	for _, d := range dirs {
		b, err := readFile(filepath.Join(d, "cgroup.procs"))
		if gone(err) != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pid <= 0 { // 0: a process that our pid namespace doesn't show
				return nil, fmt.Errorf("%s: bad pid %q", d, line)
			}
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // v1 may list one twice, says the kernel's documentation
	return slices.Compact(pids), nil
}
