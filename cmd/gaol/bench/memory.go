package bench

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
	"sync"

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// memory weighs processes. It does not see what grows in this process, nor what
// the kernel keeps for them.
func (m *measurer) memory(ctx context.Context) error {
	idle, parked := Values{}, Values{}
	for _, side := range m.jailed() {
		size, err := m.idle(ctx, side)
		if err != nil {
			return err
		}
		idle[side] = megabytes(size)
	}
	for _, side := range m.sides() {
		size, err := m.parked(ctx, side)
		if err != nil {
			return err
		}
		parked[side] = megabytes(size)
	}
	m.add(alone(idleMemoryID, "memory of an idle runtime, PSS", "MB", idle),
		againstBare(programMemoryID, "memory of one more running program, private", "MB", parked))
	return nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// idle makes a runtime, runs a program in it, and weighs the processes that stay.
func (m *measurer) idle(ctx context.Context, side Side) (_ int64, failed error) {
	before, err := descendants()
	if err != nil {
		return 0, err
	}
	rt, err := runtime.Create(ctx, m.create(side))
	if err != nil {
		return 0, err
	}
	defer func() { failed = errors.Join(failed, rt.Close()) }()
	if err := run(ctx, rt, hello); err != nil {
		return 0, err
	}
	return weighNew(before, "Pss")
}

// parked weighs the second of two alike programs that run. Private are the pages
// that no other process has: what the first has too, such as the text of Node, is
// there anyway.
func (m *measurer) parked(ctx context.Context, side Side) (size int64, failed error) {
	ctx, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()
	var before []int
	for range 2 {
		var err error
		if before, err = descendants(); err != nil {
			return 0, err
		}
		if err := m.park(ctx, side, &ended); err != nil {
			return 0, err
		}
	}
	return weighNew(before, "Private_Clean", "Private_Dirty")
}

// park starts the program and returns when it has printed its line. It is among
// running until ctx ends.
func (m *measurer) park(ctx context.Context, side Side, running *sync.WaitGroup) error {
	printed, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	line := func([]byte) { once.Do(func() { close(printed) }) }
	running.Go(func() {
		if side == Bare {
			c := m.bare.command(ctx, parked)
			c.Stdout = writerFunc(line)
			ended <- c.Run()
			return
		}
		o := parked.runOptions()
		o.OnStdout = line
		_, err := m.lasting[side].Run(ctx, parked.code(), o)
		ended <- err
	})
	select {
	case <-printed:
		return nil
	case err := <-ended:
		return errors.Join(fmt.Errorf("%s ended before its time", parked.file()), err, context.Cause(ctx))
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// weighNew weighs the descendants that have come since before.
func weighNew(before []int, fields ...string) (int64, error) {
	after, err := descendants()
	if err != nil {
		return 0, err
	}
	var total int64
	for _, pid := range after {
		if slices.Contains(before, pid) {
			continue
		}
		size, err := weigh(pid, fields...)
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

// descendants lists the processes that descend from this one.
func descendants() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		parent, err := parentOf(pid)
		if err != nil {
			return nil, err
		}
		children[parent] = append(children[parent], pid)
	}
	found := slices.Clone(children[os.Getpid()])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

// parentOf is 0 for a process that is gone.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// PID (NAME) STATE PARENT ..., where NAME may hold anything.
	var state string
	var parent int
	_, err = fmt.Sscan(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), &state, &parent)
	return parent, err
}

// weigh adds up fields of a process's smaps_rollup, in bytes.
func weigh(pid int, fields ...string) (int64, error) {
	path := filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, field := range fields {
		_, rest, found := strings.Cut(string(text), "\n"+field+":")
		if !found {
			return 0, fmt.Errorf("%s: no %s", path, field)
		}
		var kib int64
		if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
			return 0, fmt.Errorf("%s: %s: %w", path, field, err)
		}
		total += kib << 10
	}
	return total, nil
}
