package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// Two benchmarks at once have different snapshots, so that each can remove its own.
func TestSnapshotsDiffer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make jails")
	}
	parent := fmt.Sprintf("/gaol-bench-test-%d", os.Getpid())
	t.Cleanup(func() {
		both, _ := filepath.Glob("/sys/fs/cgroup/*" + parent)
		for _, dir := range append(both, "/sys/fs/cgroup"+parent) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
	})
	var ids []string
	for range 2 {
		x := &fixtures{quick: true}
		m := &bench.Measurer{Options: bench.Options{Jailed: []bench.Side{bench.Exec}, Create: runtime.Options{CgroupParent: parent}}}
		id, err := x.snapshotOfFiles(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := x.removeSnapshot(""); err != nil {
				t.Error(err)
			}
		}()
		if again, err := x.snapshotOfFiles(t.Context(), m); err != nil || again != id {
			t.Errorf("another snapshot for the same benchmark: %s, %s, %v", id, again, err)
		}
		ids = append(ids, id)
	}
	if ids[0] == ids[1] {
		t.Errorf("both snapshots are %s", ids[0])
	}
}
