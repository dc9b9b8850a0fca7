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

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// Memory is what an idle runtime costs.
type Memory struct {
	Processes int
	PSS       int64 // bytes of theirs: own pages, and a share of each shared one
}

// idleMemory makes a runtime, runs a program in it, and weighs the processes that
// stay. It does not see what grows in this process, nor kernel memory.
func idleMemory(ctx context.Context, o runtime.Options) (_ Memory, failed error) {
	before, err := descendants()
	if err != nil {
		return Memory{}, err
	}
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return Memory{}, err
	}
	defer func() { failed = errors.Join(failed, rt.Close()) }()
	if err := run(ctx, rt); err != nil {
		return Memory{}, err
	}
	after, err := descendants()
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	for _, pid := range after {
		if slices.Contains(before, pid) {
			continue
		}
		pss, err := proportionalSize(pid)
		if err != nil {
			return Memory{}, err
		}
		m.Processes++
		m.PSS += pss
	}
	return m, nil
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

// proportionalSize is a process's PSS in bytes.
func proportionalSize(pid int) (int64, error) {
	path := filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if kib, found := strings.CutPrefix(line, "Pss:"); found {
			var n int64
			_, err := fmt.Sscanf(kib, "%d kB", &n)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%s: no Pss", path)
}
