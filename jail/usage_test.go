package jail

import (
	"testing"
	"time"

	"gaol/jail/cgroup"
)

// The usage of a run is counted, and not added to that of the next one.
func TestUsageIsPerRun(t *testing.T) {
	j := newJail(t)
	for _, tc := range []struct {
		name, script string
		used         func(cgroup.Usage) bool
	}{
		{"memory", "busybox awk 'BEGIN { s = \"x\"; while (length(s) < 4000000) s = s s }'", func(u cgroup.Usage) bool { return u.PeakMemory > 8<<20 }},
		{"memory kill", "busybox awk 'BEGIN { s = \"x\"; while (1) s = s s }'", func(u cgroup.Usage) bool { return u.OOMKills > 0 && u.PeakMemory > 16<<20 }},
		{"a file", "dd if=/dev/zero of=/work/a bs=64k count=14", func(u cgroup.Usage) bool { return u.PeakMemory > 14<<16 }},
		{"tasks", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do sleep 5 & done; exit 0", func(u cgroup.Usage) bool { return u.PidsRefused > 0 && u.PeakPids == 16 }},
		{"cpu", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", func(u cgroup.Usage) bool { return u.CPU > 30*time.Millisecond }},
	} {
		for range 2 { // the second reuses a cgroup
			if u := usageOf(t, j, tc.script); !tc.used(u) {
				t.Errorf("%s: %+v", tc.name, u)
			}
			u := usageOf(t, j, "exit 0")
			if u.PeakMemory > 6<<20 || u.OOMKills > 0 || u.PeakPids > 2 || u.PidsRefused > 0 || u.CPU > 30*time.Millisecond {
				t.Errorf("a run after %s: %+v", tc.name, u)
			}
		}
	}
}

func usageOf(t *testing.T, j *Jail, script string) cgroup.Usage {
	t.Helper()
	p, read := start(t, j, script)
	exit, err := p.Wait()
	read()
	if err != nil {
		t.Errorf("%s: %+v, %v", script, exit, err)
	}
	again, err := p.Usage()
	if err != nil || again != exit.Usage {
		t.Errorf("%s: used %+v, and later %+v, %v", script, exit.Usage, again, err)
	}
	return exit.Usage
}
