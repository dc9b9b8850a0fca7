package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gaol/runtime"
)

// memory measures the memory of processes. It does not include the growth of this
// process, nor kernel memory.
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

// idle creates a runtime, runs a program in it, and returns the memory of the processes
// that stay.
func (m *measurer) idle(ctx context.Context, side Side) (_ int64, failed error) {
	var rt *runtime.NodeRuntime
	defer func() {
		if rt != nil {
			failed = errors.Join(failed, rt.Close())
		}
	}()
	return newMemory(func() (err error) {
		if rt, err = runtime.Create(ctx, m.create(side)); err == nil {
			err = run(ctx, rt, hello)
		}
		return err
	}, "Pss")
}

// parked returns the memory of the second of two equal programs that run: its private
// pages, which no other process has. It shares others, such as the text of Node, with
// the first.
func (m *measurer) parked(ctx context.Context, side Side) (size int64, failed error) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	if err := m.park(ctx, side, &running); err != nil {
		return 0, err
	}
	return newMemory(func() error { return m.park(ctx, side, &running) }, "Private_Clean", "Private_Dirty")
}

// park starts the program and returns when it has printed its line. The program is
// counted in running until ctx is canceled.
func (m *measurer) park(ctx context.Context, side Side, running *sync.WaitGroup) error {
	printed, ended := make(chan struct{}), make(chan error, 1)
	line := sync.OnceFunc(func() { close(printed) })
	running.Go(func() {
		if side == Bare {
			c := m.bare.command(ctx, parked)
			c.Stdout = writerFunc(func([]byte) { line() })
			ended <- c.Run()
			return
		}
		o := parked.runOptions()
		o.OnStdout = func([]byte) { line() }
		_, err := m.lasting[side].Run(ctx, parked.code(), o)
		ended <- err
	})
	select {
	case <-printed:
		return nil
	case err := <-ended:
		return errors.Join(fmt.Errorf("%s ended too early", parked.file()), err, context.Cause(ctx))
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// newMemory adds up fields of smaps_rollup, in bytes, of the descendants that are new
// when start has returned.
func newMemory(start func() error, fields ...string) (total int64, err error) {
	before, err := descendants()
	if err == nil {
		err = start()
	}
	if err != nil {
		return 0, err
	}
	after, err := descendants()
	for _, pid := range after {
		if err == nil && !slices.Contains(before, pid) {
			var size int64
			size, err = processMemory(pid, fields...)
			total += size
		}
	}
	return total, err
}

// descendants returns the pids of this process's descendants.
func descendants() ([]int, error) {
	found := []int{os.Getpid()}
	for i := 0; i < len(found); i++ {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", found[i]))
		if err != nil || i == 0 && len(lists) == 0 {
			return nil, errors.Join(err, errors.New("/proc has no lists of children"))
		}
		for _, list := range lists {
			text, _ := os.ReadFile(list) // fails if the thread has ended
			for field := range strings.FieldsSeq(string(text)) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					return nil, err
				}
				found = append(found, pid)
			}
		}
	}
	return found[1:], nil
}

// processMemory adds up fields of a process's smaps_rollup, in bytes.
func processMemory(pid int, fields ...string) (int64, error) {
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
