package cgroup

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

func (s subject) pool(t *testing.T) *Pool {
	t.Helper()
	return NewPool(s.group(t, Limits{}))
}

// make creates a group, which is removed with the parent at the latest.
func (p *Pool) make(t *testing.T, l Limits) *Group {
	t.Helper()
	g, err := p.New(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(t, g) })
	return g
}

func (p *Pool) killAndDelete(t *testing.T, g *Group) {
	t.Helper()
	kill(t, g)
	used, _ := g.Usage() // some subjects have none
	if err := p.Delete(g, used); err != nil {
		t.Error(err)
	}
}

// memoryDir returns a group's directory in the memory hierarchy, or its only directory.
func memoryDir(g *Group) string { return g.Dirs()[min(2, len(g.Dirs())-1)] }

// memoryInfo identifies a group in the memory hierarchy, whatever its name.
func memoryInfo(t *testing.T, g *Group) os.FileInfo {
	t.Helper()
	info, err := os.Stat(memoryDir(g))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// The usage of a group does not include that of an earlier one.
func testPoolUsage(t *testing.T, s subject) {
	inTmpfs, tmpfsFile := writeRole(t, tmpfs, fileSize)
	inCache, cachedFile := writeRole(t, t.TempDir(), fileSize)
	written := func(file string) func(Usage) bool { // the process itself uses some megabytes
		return func(u Usage) bool {
			info, err := os.Stat(file)
			return err == nil && info.Size() == fileSize && u.Memory >= fileSize
		}
	}
	for _, test := range []struct {
		name   string
		role   string
		limits Limits
		did    func(Usage) bool
		reused bool // on v1
	}{
		{"nothing", "sleep", Limits{}, func(u Usage) bool { return u.PeakPids > 0 }, true},
		{"cpu", "spin", Limits{CPUs: 1}, func(u Usage) bool { return u.CPU > 15*time.Millisecond }, true},
		{"much memory", "allocate", Limits{Memory: 512 << 20}, func(u Usage) bool { return u.PeakMemory > 200<<20 }, true},
		{"memory kill", "allocate", Limits{Memory: 64 << 20}, func(u Usage) bool { return u.OOMKills == 1 }, true},
		{"refused forks", "forkbomb", Limits{Pids: 20}, func(u Usage) bool { return u.PidsRefused > 0 && u.PeakPids == 20 }, true},
		{"a file that stays", inTmpfs, Limits{Memory: 512 << 20}, written(tmpfsFile), false},
		{"page cache", inCache, Limits{Memory: 512 << 20}, written(cachedFile), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := s.pool(t)
			first := p.make(t, test.limits)
			before := memoryInfo(t, first)
			guest(t, first, test.role)
			used := waitUsage(t, first, test.did)
			kill(t, first)
			if test.reused { // the kernel may free it late
				waitUsage(t, first, func(u Usage) bool { return u.Memory <= maxLeft(test.limits.Memory) })
			}
			p.killAndDelete(t, first)

			second := p.make(t, test.limits)
			reused := os.SameFile(before, memoryInfo(t, second))
			if _, v1 := s.on.(*v1); v1 && reused != test.reused {
				t.Errorf("its group was reused: %v; it used %+v", reused, used)
			}
			own, err := second.Usage()
			if most := maxLeft(test.limits.Memory); err != nil || own.Memory > most || own.PeakMemory > most {
				t.Errorf("%+v, %v: more than %d bytes", own, err, most)
			}
			if own.Memory, own.PeakMemory, own.PeakPids = 0, 0, max(0, own.PeakPids-1); own != (Usage{}) { // the next process counts as the first again
				t.Errorf("usage of a new group: %+v", own)
			}
			guest(t, second, test.role)
			waitUsage(t, second, test.did)
		})
	}
}

// waitUsage waits until enough accepts the usage.
func waitUsage(t *testing.T, g *Group, enough func(Usage) bool) Usage {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		u, err := g.Usage()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("usage %+v, %v", u, err)
		}
		if enough(u) {
			return u
		}
	}
}

// The limits of a group do not depend on an earlier group's.
func testPoolLimits(t *testing.T, s subject) {
	const small, large = 32 << 20, 128 << 20
	for _, memory := range [][2]int64{{small, large}, {large, small}, {small, 0}, {0, small}, {small, small}} {
		p := s.pool(t)
		first := p.make(t, Limits{Memory: memory[0]})
		guest(t, first, "spin").Wait()
		waitUsage(t, first, func(u Usage) bool { return u.Memory <= maxLeft(0) })
		p.killAndDelete(t, first)
		second := p.make(t, Limits{Memory: memory[1]})
		if second.Path() != first.Path() {
			t.Errorf("%s after %s", second.Path(), first.Path())
		}
		cmd := guest(t, second, "allocate")
		cmd.Wait()
		killed := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
		u, err := second.Usage()
		if limit := memory[1]; err != nil || killed != (limit > 0) || killed && (u.PeakMemory < limit/2 || u.PeakMemory > limit+1<<20) {
			t.Errorf("%d, then %d: killed: %v, usage %+v, %v", memory[0], limit, killed, u, err)
		}
	}
}

// A reused group lacks no more memory than maxLeft.
func testPoolMemory(t *testing.T, s subject) {
	const limit = 300 << 20 // the guest uses 256 MiB
	p := s.pool(t)
	first := p.make(t, Limits{Memory: limit})
	role, _ := writeRole(t, tmpfs, int(maxLeft(limit))/2)
	guest(t, first, role).Wait()
	left := waitUsage(t, first, func(u Usage) bool { return u.Memory <= maxLeft(limit) })
	p.killAndDelete(t, first)
	second := p.make(t, Limits{Memory: limit})
	if _, v1 := s.on.(*v1); v1 && second.Path() != first.Path() {
		t.Errorf("%+v, and it was not reused", left)
	}
	cmd := guest(t, second, "allocate")
	if err := cmd.Wait(); err != nil {
		t.Errorf("with %+v left: %v", left, err)
	}
	if u, err := second.Usage(); err != nil || u.OOMKills > 0 || u.PeakMemory < 256<<20 {
		t.Errorf("%+v, %v", u, err)
	}
}

// The methods of a deleted group do not act on a later group with the same name.
func testPoolDeleted(t *testing.T, s subject) {
	p := s.pool(t)
	first := p.make(t, Limits{})
	p.killAndDelete(t, first)
	if _, err := first.Usage(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("usage before the next: %v", err)
	}
	second := p.make(t, Limits{})
	if second.Path() != first.Path() {
		t.Errorf("%s after %s: this test proves nothing", second.Path(), first.Path())
	}
	cmd := guest(t, second, "sleep")
	kill(t, first)
	if err := errors.Join(first.Delete(), p.Delete(first, Usage{})); err != nil {
		t.Error(err)
	}
	if _, err := first.Usage(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("usage: %v", err)
	}
	if err := first.AddPID(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("add: %v", err)
	}
	for _, d := range second.Dirs() {
		if pids, err := listProcs([]string{d}); err != nil || len(pids) != 1 {
			t.Errorf("%s: processes %v, %v", d, pids, err)
		}
	}
	if third := p.make(t, Limits{}); third.Path() == second.Path() {
		t.Error("two groups have one name")
	}
}

// A pool has as many names and memory groups as it had groups at one time. They are removed
// with the parent.
func testPoolBound(t *testing.T, s subject) {
	const atOnce = 5
	p := s.pool(t)
	names := map[string]bool{}
	for range 4 {
		var groups []*Group
		for range atOnce {
			g := p.make(t, Limits{})
			names[g.Path()] = true
			groups = append(groups, g)
		}
		for _, g := range groups {
			p.killAndDelete(t, g)
		}
	}
	if len(names) != atOnce {
		t.Errorf("%d groups at a time had the names %v", atOnce, names)
	}
	if _, err := p.New(Limits{Pids: -1}); err == nil {
		t.Error("a negative limit is no error")
	}
	parent := &Group{path: p.parent, on: s.on}
	if err := parent.Delete(); err != nil {
		t.Error(err)
	}
	for _, d := range parent.Dirs() {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// Groups that files are charged to are not reused. Few of them are kept, and those are
// reused after the files are removed.
func testPoolCharged(t *testing.T, s subject) {
	const more = 3
	p := s.pool(t)
	var files []string
	names, last := map[string]bool{}, ""
	for range maxCharged + 1 + more {
		role, file := writeRole(t, tmpfs, fileSize)
		files = append(files, file)
		g := p.make(t, Limits{})
		if _, v1 := s.on.(*v1); v1 && g.Path() == last {
			t.Errorf("%s was reused", last)
		}
		names[g.Path()], last = true, g.Path()
		guest(t, g, role).Wait()
		p.killAndDelete(t, g)
	}
	if len(names) > maxCharged+1 || len(p.spares) > maxCharged+1 {
		t.Errorf("%d names, %d spares", len(names), len(p.spares))
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		g := p.make(t, Limits{})
		p.killAndDelete(t, g)
		if g.Path() == last {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not reused", last)
		}
	}
}

// A pool tolerates that another process removes a spare.
func testPoolRemoved(t *testing.T, s subject) {
	p := s.pool(t)
	first := p.make(t, Limits{})
	p.killAndDelete(t, first)
	if err := (&Group{path: first.path, on: s.on}).Delete(); err != nil {
		t.Fatal(err)
	}
	guest(t, p.make(t, Limits{}), "sleep")
}

// Deleting a group that holds a process is an error, and the group is not reused.
func testPoolBusy(t *testing.T, s subject) {
	p := s.pool(t)
	first := p.make(t, Limits{})
	guest(t, first, "sleep")
	if err := p.Delete(first, Usage{PeakPids: 1}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("in use: %v", err)
	}
	before := memoryInfo(t, first)
	if os.SameFile(before, memoryInfo(t, p.make(t, Limits{}))) {
		t.Error("it was reused")
	}
}

func testPoolMany(t *testing.T, s subject) {
	p := s.pool(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				g, err := p.New(Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				cmd := guest(t, g, "sleep")
				err = g.Kill(t.Context())
				cmd.Wait()
				if err := errors.Join(err, p.Delete(g, Usage{})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The IDs of an identified pool's groups are unique, even if a name is reused.
func testPoolIdentified(t *testing.T, s subject) {
	p, err := NewIdentifiedPool(s.group(t, Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[uint64]bool{}
	for range 3 {
		g := p.make(t, Limits{})
		guest(t, g, "sleep")
		id, err := g.ID()
		if err != nil || id == 0 || ids[id] {
			t.Errorf("ID %d, %v, after %v", id, err, ids)
		}
		ids[id] = true
		p.killAndDelete(t, g)
		if _, err := g.ID(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("ID of a deleted group: %v", err)
		}
	}
	if g := s.group(t, Limits{}); s.name == "v1" {
		if _, err := g.ID(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("ID of a group of v1: %v", err)
		}
	}
}
