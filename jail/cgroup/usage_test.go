package cgroup

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func testCPU(t *testing.T, s subject) {
	g := s.group(t, Limits{CPUs: 0.5})
	guest(t, g, "spin").Wait()
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if u.CPU < 15*time.Millisecond || u.CPU > time.Second {
		t.Errorf("cpu %v", u.CPU)
	}
}

func testMemory(t *testing.T, s subject) {
	const limit = 64 << 20
	g := s.group(t, Limits{Memory: limit})
	cmd := guest(t, g, "allocate")
	cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != unix.SIGKILL {
		t.Errorf("ended by %v", got)
	}
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if u.Memory < 0 || u.Memory > u.PeakMemory {
		t.Errorf("%d bytes now: %+v", u.Memory, u)
	}
	// The kernel may charge a few pages over the limit.
	if u.OOMKills != 1 || u.PeakMemory > limit+1<<20 || u.PeakMemory < limit/2 {
		t.Errorf("usage %+v", u)
	}
}

func testPids(t *testing.T, s subject) {
	const limit = 20
	g := s.group(t, Limits{Pids: limit})
	guest(t, g, "forkbomb")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		u, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if u.PidsRefused > 0 && u.PeakPids == limit {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("usage %+v", u)
		}
	}
}
