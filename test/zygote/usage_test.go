package zygote

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// jailCPU returns the processor time of all runs of the only runtime so far.
func jailCPU(t *testing.T) time.Duration {
	t.Helper()
	var v1, v2 time.Duration // beside v1 there may be a v2 hierarchy, which counts the same
	for _, group := range harness.JailCgroups() {
		if !strings.HasPrefix(filepath.Base(group), "j") {
			continue
		}
		if ns, err := os.ReadFile(group + "/cpuacct.usage"); err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(ns)), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			v1 += time.Duration(n)
		} else if strings.Contains(strings.Join(harness.Lines(group+"/cpu.stat"), "\n"), "usage_usec") {
			v2 += time.Duration(harness.ProcNumber(t, group+"/cpu.stat", "usage_usec")) * time.Microsecond
		}
	}
	return cmp.Or(v1, v2)
}

// Runs that reuse cgroups have the usage that they would have in new ones: what they use in all is what
// the kernel has counted for the runtime, and no run has a part of another's.
func TestZygoteUsageIsExact(t *testing.T) {
	o := harness.Options(runtime.Options{Zygote: runtime.ZygoteOptions{Park: -1}})
	o.Launcher = runtime.LauncherZygote
	rt := harness.CreateExact(t, o)
	const small, forks = `__return(1)`, `import { spawnSync } from 'node:child_process'; spawnSync('true'); __return(1)`
	const large = `__return(Buffer.alloc(30 << 20, 1).length)`
	harness.Run(t, rt, forks, runtime.RunOptions{}) // the next group is new
	fresh := harness.Run(t, rt, small, runtime.RunOptions{}).Usage
	before := jailCPU(t)
	var sum time.Duration
	var cpu []time.Duration
	var memory []int64
	for i := range harness.Count(t, harness.RunsVar, harness.Fewer(1000, 100)) {
		if i%10 == 0 {
			u := harness.Run(t, rt, large, runtime.RunOptions{}).Usage
			if u.PeakMemory < 30<<20 && !harness.InGVisor() { // which measures it 20 times a second
				t.Errorf("a run with 30 MiB used %+v", u)
			}
			sum += u.CPU
			continue
		}
		u := harness.Run(t, rt, small, runtime.RunOptions{}).Usage
		if u.PeakPids > fresh.PeakPids {
			t.Errorf("run %d: %+v, in a new group %+v", i, u, fresh)
		}
		sum, cpu, memory = sum+u.CPU, append(cpu, u.CPU), append(memory, u.PeakMemory)
	}
	all := jailCPU(t) - before
	t.Logf("all runs: %v, the kernel: %v", sum, all)
	if diff := (all - sum).Abs(); diff > all/50 && !(harness.InGVisor() && sum < all) { // the kernel also counts gVisor itself
		t.Errorf("all runs used %v, the kernel has counted %v", sum, all)
	}
	slices.Sort(cpu)
	slices.Sort(memory)
	middle := len(cpu) / 2
	t.Logf("median %v and %d KiB, in a new group %v and %d KiB", cpu[middle], memory[middle]>>10, fresh.CPU, fresh.PeakMemory>>10)
	if most := memory[len(memory)-1]; !harness.InGVisor() && most > fresh.PeakMemory+3<<20 { // 2 MiB of an earlier run, see package cgroup
		t.Errorf("a run used %d KiB, in a new group %d KiB", most>>10, fresh.PeakMemory>>10)
	}
}
