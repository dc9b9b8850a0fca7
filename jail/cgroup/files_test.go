package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiles(t *testing.T) {
	for _, tc := range []struct {
		limits           Limits
		cpu, max, memory string
	}{
		{Limits{}, "max 100000", "max", "9223372036854771712"},
		{Limits{Memory: 256 << 20, CPUs: 1.5, Pids: 64}, "150000 100000", "268435456", "268435456"},
		{Limits{Memory: 100_000_000, CPUs: 0.001}, "1000 100000", "99999744", "99999744"}, // as the kernel rounds
	} {
		want := map[string]string{
			"/sys/fs/cgroup/cgroup.controllers":                "cpu memory\n",
			"/sys/fs/cgroup/cpu.max":                           tc.cpu + "\n",
			"/sys/fs/cgroup/memory.high":                       "max\n",
			"/sys/fs/cgroup/memory.max":                        tc.max + "\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":      tc.memory + "\n",
			"/sys/fs/cgroup/memory/memory.soft_limit_in_bytes": tc.memory + "\n",
		}
		if diff := cmp.Diff(want, tc.limits.Files()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.limits, diff)
		}
	}
}
