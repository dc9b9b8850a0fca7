package cgroup

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"gaol/internal/kernfile"
)

// No attempt freezes the group: its processes would survive if the host were killed then.
// Later attempts disable forks instead.
func TestV1KillDoesNotFreeze(t *testing.T) {
	for _, s := range subjects(t) {
		v, ok := s.on.(*v1)
		if !ok {
			continue
		}
		for _, n := range []int{0, plainKills} {
			g := s.group(t, Limits{})
			cmd := guest(t, g, "sleep")
			if empty, err := v.kill(g.path, n); empty || err != nil {
				t.Errorf("attempt %d: %v, %v", n, empty, err)
			}
			if cmd.Wait(); cmd.ProcessState.Success() {
				t.Errorf("attempt %d: not killed", n)
			}
			if state, err := kernfile.ReadFile(v.dir("freezer", g.path) + "/freezer.state"); err != nil || string(state) != "THAWED\n" {
				t.Errorf("attempt %d: the group is %q, %v", n, state, err)
			}
			most, err := kernfile.ReadFile(v.dir("pids", g.path) + "/pids.max")
			if stopped := string(most) == "0\n"; err != nil || stopped != (n == plainKills) {
				t.Errorf("attempt %d: the group may have %q tasks, %v", n, most, err)
			}
		}
	}
}

// Forks that Kill refuses are not the limit's: a run that leaves processes behind did not
// exceed it.
func TestV1KillRefusesForks(t *testing.T) {
	for _, s := range subjects(t) {
		v, ok := s.on.(*v1)
		if !ok {
			continue
		}
		g := s.group(t, Limits{Pids: 100})
		cmd := guest(t, g, "sleep")
		if empty, err := g.killOnce(plainKills); empty || err != nil {
			t.Fatal(empty, err)
		}
		cmd.Wait()
		guest(t, g, "forkbomb")
		for u, err := v.usage(g.path); u.PidsRefused == 0; u, err = v.usage(g.path) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if u, err := g.Usage(); err != nil || u.PidsRefused > 0 {
			t.Errorf("%+v, %v", u, err)
		}
		kill(t, g)
	}
}

// A group may have a higher limit than those above it, which hold: the kernel would reject it.
func TestV1CPUsAbove(t *testing.T) {
	for _, s := range subjects(t) {
		v, ok := s.on.(*v1)
		if !ok {
			continue
		}
		above := s.group(t, Limits{CPUs: 0.25})
		if err := kernfile.WriteFile(v.dir("cpu", above.path)+"/cpu.cfs_period_us", fmt.Sprint(cpuPeriod/2)); err != nil {
			t.Fatal(err)
		}
		for cpus, want := range map[float64]int64{2: cpuPeriod / 2, 0.1: cpuPeriod / 10} {
			g := s.at(t, fmt.Sprint(above.path, "/", cpus), Limits{CPUs: cpus})
			var quota int64
			if err := readInt(&quota, v.dir("cpu", g.path)+"/cpu.cfs_quota_us"); err != nil || quota != want {
				t.Errorf("%v processors in a group with half a processor: %d, %v, want %d", cpus, quota, err, want)
			}
		}
	}
}

// Unread data of a dead process is charged to its group until the kernel frees it. v1
// accounts it separately.
func TestV1PoolTCP(t *testing.T) {
	for _, s := range subjects(t) {
		v, ok := s.on.(*v1)
		if _, err := os.Stat("/sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes"); !ok || err != nil {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p, limits := s.pool(t), Limits{Memory: 64 << 20}
		buffers := func(g *Group) (n int64) {
			if err := readInt(&n, v.dir("memory", g.path)+"/memory.kmem.tcp.usage_in_bytes"); err != nil {
				t.Fatal(err)
			}
			return n
		}
		first := p.make(t, limits)
		for deadline := time.Now().Add(time.Minute); ; first = p.make(t, limits) {
			guest(t, first, "send "+l.Addr().String())
			waitUsage(t, first, func(Usage) bool { return buffers(first) > maxLeft(limits.Memory) })
			kill(t, first)
			if buffers(first) > maxLeft(limits.Memory) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the kernel frees the buffers at once: this test proves nothing")
			}
			p.killAndDelete(t, first)
		}
		p.killAndDelete(t, first)
		if n := buffers(p.make(t, limits)); n > 0 {
			t.Errorf("the next group begins with %d bytes", n)
		}
	}
}
