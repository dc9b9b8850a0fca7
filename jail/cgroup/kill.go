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

	"gaol/jail/kernfile"
)

// Kill kills every process in the group and its descendants, including stopped and frozen
// ones. It returns when no process is left or ctx is done. Zombies do not count.
func (g *Group) Kill(ctx context.Context) error {
	wait := backoff{least: 50 * time.Microsecond, most: 4 * time.Millisecond}
	var last error
	for n := 0; ; n++ {
		// Retry after an error: the process that caused it may be exiting.
		empty, err := g.killOnce(n)
		if empty || errors.Is(err, errDeleted) {
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

// killOnce makes the nth attempt, counting from 0.
func (g *Group) killOnce(n int) (empty bool, err error) {
	err = g.use(func() error {
		if n == plainKills { // from now on v1 refuses forks, and counts them
			if u, err := g.on.usage(g.path); err == nil {
				g.refused.Store(&u.PidsRefused)
			}
		}
		empty, err = g.on.kill(g.path, n)
		return err
	})
	return empty, err
}

// backoff doubles its sleep each time: a process exits in microseconds as a rule, but may
// take a second to free a lot of memory.
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

// killProcs kills the processes in dirs. Between the read of the pids and the signal a
// process may die and an unrelated one get its pid. So killProcs opens a pidfd for each and
// reads the list again: a pid that is still listed is that of the pidfd's process, or that
// process is gone.
func killProcs(dirs []string) error {
	pids, err := listProcs(dirs)
	if err != nil {
		return err
	}
	// Bounds the descriptors in use. The next attempt kills the rest.
	const most = 256
	pidfds, err := openPidfds(pids[:min(len(pids), most)])
	defer func() {
		for _, fd := range pidfds {
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
		fd, ok := pidfds[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	return nil
}

// openPidfds opens a pidfd for each process that still exists. The caller closes them,
// also on error.
func openPidfds(pids []int) (map[int]int, error) {
	pidfds := make(map[int]int, len(pids))
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ESRCH || err == unix.EMFILE && len(pidfds) > 0 {
			continue
		}
		if err != nil {
			return pidfds, fmt.Errorf("pidfd of %d: %w", pid, err)
		}
		pidfds[pid] = fd
	}
	return pidfds, nil
}

// listProcs returns the processes in dirs, without duplicates. A missing directory has
// none.
func listProcs(dirs []string) ([]int, error) {
	var pids []int
	for _, d := range dirs {
		b, err := kernfile.ReadFile(filepath.Join(d, procsFile))
		if ignoreGone(err) != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pid <= 0 { // 0: a process outside of our pid namespace
				return nil, fmt.Errorf("%s: bad pid %q", d, line)
			}
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // v1 may list one twice, according to the kernel's documentation
	return slices.Compact(pids), nil
}
