package gvisor

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// A sandbox that waits, with its zygote, uses some 55 MB that the host cannot reclaim without swap: 53 to 58 in 13 measurements.
func TestIdleMemory(t *testing.T) {
	const most = 60_000_000
	rt := create(t, runtime.Options{})
	harness.Run(t, rt, "", runtime.RunOptions{})
	used := harness.Settle(most, unreclaimable)
	if t.Logf("%.1f MB", float64(used)/1e6); used == 0 || used > most {
		t.Errorf("an idle sandbox uses %d bytes", used)
	}
}

// unreclaimable adds up the anonymous memory and the memory files of this process's sandboxes.
func unreclaimable() (bytes int64) {
	for _, group := range harness.JailCgroups() {
		for _, line := range harness.Lines(filepath.Join(group, "memory.stat")) {
			switch name, text, _ := strings.Cut(line, " "); name {
			case "anon", "rss", "shmem": // of cgroup v2, of v1, and of both
				n, _ := strconv.ParseInt(text, 10, 64) // the kernel writes numbers only
				bytes += n
			}
		}
	}
	return bytes
}
