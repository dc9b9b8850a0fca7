package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// inodes identify a group's directories, whatever their names. Those of the kernel's cgroups are
// unique.
func inodes(t *testing.T, g *Group) (all []uint64) {
	t.Helper()
	for _, d := range g.Dirs() {
		n, err := inode(d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// runShell runs a program with one thread in a group.
func runShell(t *testing.T, g *Group, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read line; "+script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.AddPID(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	_, _ = in.Write([]byte("\n"))
	_ = cmd.Wait()
}

const (
	spin = `i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done`
	fork = `sleep 0 & wait`
)

// All groups are reused only if nothing in them differs from new ones.
func testPoolReset(t *testing.T, s subject) {
	limits := Limits{Memory: 64 << 20, CPUs: 1, Pids: 10}
	for name, tc := range map[string]struct {
		script string
		next   Limits
		same   int // directories, of five
	}{
		"one process":   {spin, limits, 5},
		"two processes": {fork, limits, 1},
		"other limits":  {spin, Limits{Memory: 32 << 20, CPUs: 1, Pids: 10}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.pool(t)
			first := p.make(t, limits)
			before := inodes(t, first)
			runShell(t, first, tc.script)
			kill(t, first)
			waitUsage(t, first, func(u Usage) bool { return u.Memory <= maxLeft(limits.Memory) })
			used, err := first.Usage()
			if err := errors.Join(err, p.Delete(first, used)); err != nil || used.CPU == 0 || used.PeakPids == 0 || used.PeakMemory == 0 {
				t.Errorf("used %+v, %v", used, err)
			}
			second := p.make(t, tc.next)
			same := 0
			for i, n := range inodes(t, second) {
				if n == before[i] {
					same++
				}
			}
			if s.name != "v1" {
				tc.same = 0
			}
			if same != tc.same {
				t.Errorf("%d directories are reused, want %d", same, tc.same)
			}
			own, err := second.Usage()
			if own.Memory, own.PeakMemory, own.PeakPids = 0, 0, max(0, own.PeakPids-1); err != nil || own != (Usage{}) {
				t.Errorf("usage of a new group: %+v, %v", own, err)
			}
			runShell(t, second, `: > /dev/null`)
			if own, err := second.Usage(); err != nil || own.PeakPids != 1 || own.CPU > used.CPU/2 && tc.script == spin {
				t.Errorf("usage %+v, %v, after %+v", own, err, used)
			}
		})
	}
}

// A quota of less than a processor, a fork that Kill refused, and SetFrozen prevent reuse.
func testPoolNotReset(t *testing.T, s subject) {
	p := s.pool(t)
	first := p.make(t, Limits{CPUs: 0.5})
	before := inodes(t, first)
	runShell(t, first, ":")
	p.killAndDelete(t, first)
	if again := inodes(t, p.make(t, Limits{CPUs: 0.5})); again[0] == before[0] {
		t.Error("a group with half a processor was reused")
	}
	third := p.make(t, Limits{})
	runShell(t, third, ":")
	before = inodes(t, third)
	refused := int64(0)
	third.refused.Store(&refused)
	p.killAndDelete(t, third)
	if again := inodes(t, p.make(t, Limits{})); again[0] == before[0] {
		t.Error("a group in which forks are refused was reused")
	}
	fifth := p.make(t, Limits{})
	runShell(t, fifth, ":")
	if err := fifth.SetFrozen(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	before = inodes(t, fifth)
	p.killAndDelete(t, fifth)
	if again := inodes(t, p.make(t, Limits{})); again[0] == before[0] {
		t.Error("a frozen group was reused")
	}
}

// An idle pool removes surplus groups. A closed one does nothing.
func testPoolIdle(t *testing.T, s subject) {
	for _, closed := range []bool{false, true} {
		p := s.pool(t)
		g := p.make(t, Limits{})
		runShell(t, g, ":")
		deleted := time.Now()
		p.killAndDelete(t, g)
		if closed {
			p.Close()
			p.removeOld()
		}
		freezer := g.Dirs()[0]
		_, err := os.Stat(freezer)
		if s.name == "v1" && err != nil && (closed || time.Since(deleted) < keepTime) {
			t.Fatalf("closed %v: it was not kept: %v", closed, err)
		}
		for deadline := time.Now().Add(time.Minute); err == nil && !closed; time.Sleep(time.Millisecond) {
			if _, err = os.Stat(freezer); time.Now().After(deadline) {
				t.Fatalf("%s still exists", freezer)
			}
		}
		if !closed {
			continue
		}
		if _, err := os.Stat(freezer); s.name == "v1" && err != nil {
			t.Errorf("a closed pool removed %s", strings.TrimPrefix(freezer, mountpoint))
		}
	}
}
