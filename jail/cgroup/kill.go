package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
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
			u, _ := g.on.usage(g.path) // zero if it can't be read
			g.refused.Store(&u.PidsRefused)
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
// reads the list again: a pid that is still listed belongs to the pidfd's process, or that
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

// deleteTimeout bounds how long Delete waits for killed processes to exit. Until then the
// kernel returns EBUSY.
const deleteTimeout = time.Second

// Delete removes the group and its descendants in every hierarchy. None of them may hold
// a process. Deleting a missing group is not an error.
func (g *Group) Delete() error {
	err := g.use(func() error { return removeAll(append(g.on.dirs(g.path), g.on.otherDirs(g.path)...)) })
	if errors.Is(err, errDeleted) {
		return nil
	}
	return err
}

// Remove kills all processes in the group at path and its descendants, and deletes these. The
// group need not exist.
func Remove(ctx context.Context, path string) error {
	g, err := Open(path)
	if err != nil {
		return err
	}
	if err := g.Kill(ctx); err != nil {
		return err
	}
	return g.Delete()
}

// Sweep kills and deletes the group's children except those for whose names keep returns
// true. It continues after an error and returns all errors. It ignores a missing group.
func (g *Group) Sweep(ctx context.Context, keep func(name string) bool) error {
	var errs []error
	for _, dir := range g.Dirs() { // a crash may have left a group in only one hierarchy
		entries, err := os.ReadDir(dir)
		errs = append(errs, ignoreGone(err))
		for _, e := range entries {
			if e.IsDir() && !keep(e.Name()) {
				child := &Group{path: filepath.Join(g.path, e.Name()), on: g.on}
				errs = append(errs, child.Kill(ctx), child.Delete())
			}
		}
	}
	return errors.Join(errs...)
}

func removeAll(dirs []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	var errs []error
	for _, d := range dirs {
		if err := remove(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("cgroup: delete %s: %w", d, err))
		}
	}
	return errors.Join(errs...)
}

// remove replaces the library's Delete, which walks each hierarchy before it removes
// anything, tries to unlink every file, and sleeps for at least 10 ms if the group is
// busy.
func remove(ctx context.Context, dir string) error {
	wait := backoff{least: 100 * time.Microsecond, most: 10 * time.Millisecond}
	for {
		err := rmdir(dir)
		if err != unix.EBUSY {
			return err
		}
		// A group with descendants is busy, too.
		dirs, treeErr := tree(dir)
		if treeErr != nil {
			return treeErr
		}
		for _, d := range slices.Backward(dirs) {
			err = rmdir(d)
		}
		if err != unix.EBUSY || wait.sleep(ctx) != nil { // the last one is dir itself
			return err
		}
	}
}

func rmdir(dir string) error {
	for {
		if err := unix.Rmdir(dir); err != unix.EINTR {
			return ignoreGone(err)
		}
	}
}

// tree returns the directories of a group and all its descendants, parents first. It skips removed groups.
func tree(top string) (dirs []string, err error) {
	err = filepath.WalkDir(top, func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return ignoreGone(err)
		}
		dirs = append(dirs, dir)
		info, err := e.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Nlink == 2 { // kernfs counts links as other file systems do: two, and one for each child
			return fs.SkipDir
		}
		return ignoreGone(err)
	})
	return dirs, err
}
