package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
	m := &measurer{options: Options{Launchers: []runtime.Launcher{runtime.LauncherExec}, Create: runtime.Options{CgroupParent: parent}}}
	var ids []string
	for range 2 {
		s, store, err := m.snapshotOf(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
		defer func() {
			if err := store.Remove(s.ID); err != nil {
				t.Error(err)
			}
		}()
	}
	if ids[0] == ids[1] {
		t.Errorf("both snapshots are %s", ids[0])
	}
}
