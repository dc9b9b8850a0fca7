package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// idleMemory measures the processes of a new runtime that stay after a program has run. One
// sample is enough: memory does not depend on the load of the machine.
func (x *fixtures) idleMemory(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	return bench.Sample(ctx, 1, m.Options.Jailed, func(side bench.Side) (_ float64, failed error) {
		before := descendants()
		rt, err := runtime.Create(ctx, m.Create(side))
		if err != nil {
			return 0, err
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
		if err := bench.Run(ctx, rt, bench.Hello); err != nil {
			return 0, err
		}
		return newMemory(before, "Pss")
	})
}

// programMemory measures the second of two equal programs that run: its private pages,
// which no other process has. It shares others, such as the text of Node, with the first.
func (x *fixtures) programMemory(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	return bench.Sample(ctx, 1, m.Sides(), func(side bench.Side) (float64, error) {
		ctx, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		if err := park(ctx, m, side, &running); err != nil {
			return 0, err
		}
		before := descendants()
		if err := park(ctx, m, side, &running); err != nil {
			return 0, err
		}
		return newMemory(before, "Private_Clean", "Private_Dirty")
	})
}

// park starts the program and returns when it has printed its line. The program is
// counted in running until ctx is canceled.
func park(ctx context.Context, m *bench.Measurer, side bench.Side, running *sync.WaitGroup) error {
	first := make(chan error, 2) // nil for the line
	line := sync.OnceFunc(func() { first <- nil })
	running.Go(func() {
		var err error
		if side == bench.Bare {
			var c *exec.Cmd
			if c, err = m.Bare.Command(ctx, parked); err == nil {
				c.Stdout = writerFunc(func([]byte) { line() })
				err = c.Run()
			}
		} else {
			_, err = parked.Run(ctx, m.Lasting[side], func([]byte) { line() })
		}
		first <- errors.Join(fmt.Errorf("%s ended too early", parked.File()), err, context.Cause(ctx))
	})
	return <-first
}

// writerFunc makes a callback of package exec's output.
type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// newMemory adds up fields of smaps_rollup, in megabytes, of this process's descendants
// that are not among before. The growth of this process is not included, nor is kernel
// memory.
func newMemory(before []int, fields ...string) (megabytes float64, err error) {
	for _, pid := range descendants() {
		if slices.Contains(before, pid) {
			continue
		}
		kib, err := processMemory(pid, fields...)
		if err != nil {
			return 0, err
		}
		megabytes += kib * 1024 / 1e6
	}
	if megabytes == 0 { // this kernel lacks /proc/PID/task/TID/children, for example
		return 0, errors.New("/proc does not show the memory of new processes")
	}
	return megabytes, nil
}

// descendants returns the pids of this process's descendants.
func descendants() []int {
	found := []int{os.Getpid()}
	for i := 0; i < len(found); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", found[i])) // the pattern is right
		for _, list := range lists {
			text, _ := os.ReadFile(list) // fails if the thread has ended
			for field := range strings.FieldsSeq(string(text)) {
				pid, _ := strconv.Atoi(field) // the kernel writes numbers only
				found = append(found, pid)
			}
		}
	}
	return found[1:]
}

// processMemory adds up fields of a process's smaps_rollup, in KiB.
func processMemory(pid int, fields ...string) (kib float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if slices.Contains(fields, name) {
			var n float64
			_, failed := fmt.Sscanf(rest, "%f kB", &n)
			kib, err = kib+n, errors.Join(err, failed)
		}
	}
	return kib, err
}
