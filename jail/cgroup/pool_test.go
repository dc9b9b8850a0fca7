package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

func (s subject) pool(t *testing.T) *Pool {
	t.Helper()
	return NewPool(s.group(t, Limits{}))
}

// make makes a group that goes with the parent, if not before.
func (p *Pool) make(t *testing.T, name string, l Limits) *Group {
	t.Helper()
	g, err := p.New(name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(t, g) })
	return g
}

func (p *Pool) end(t *testing.T, g *Group) {
	t.Helper()
	kill(t, g)
	if err := p.Delete(g); err != nil {
		t.Error(err)
	}
}

// memoryDir is a group's directory in the memory hierarchy, or its only one.
func memoryDir(g *Group) string { return g.Dirs()[min(2, len(g.Dirs())-1)] }

// memoryInfo tells one group in the memory hierarchy, where it is one of its own, from
// another, whatever its name.
func memoryInfo(t *testing.T, g *Group) os.FileInfo {
	t.Helper()
	info, err := os.Stat(memoryDir(g))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Whatever a group did, the next one's usage is its own.
func testPoolUsage(t *testing.T, s subject) {
	for _, test := range []struct {
		name   string
		role   string
		limits Limits
		did    func(Usage) bool
		handed string // on v1; empty: either, as processes that have just ended may be much
	}{
		{"nothing", "sleep", Limits{}, func(u Usage) bool { return u.PeakPids > 0 }, "yes"},
		{"cpu", "spin", Limits{CPUs: 1}, func(u Usage) bool { return u.CPU > 15*time.Millisecond }, "yes"},
		{"much memory", "allocate", Limits{Memory: 512 << 20}, func(u Usage) bool { return u.PeakMemory > 200<<20 }, "yes"},
		{"memory kill", "allocate", Limits{Memory: 64 << 20}, func(u Usage) bool { return u.OOMKills == 1 }, "no"},
		{"refused forks", "forkbomb", Limits{Pids: 20}, func(u Usage) bool { return u.PidsRefused > 0 && u.PeakPids == 20 }, ""},
		{"a file that stays", "write", Limits{Memory: 512 << 20}, func(u Usage) bool { return u.Memory >= fileSize }, "no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := s.pool(t)
			first := p.make(t, "r1", test.limits)
			before := memoryInfo(t, first)
			guest(t, first, test.role)
			used := waitUsage(t, first, test.did)
			p.end(t, first)

			second := p.make(t, "r2", test.limits)
			handed := os.SameFile(before, memoryInfo(t, second))
			if _, v1 := s.on.(*v1); handed && test.handed == "no" || !handed && test.handed == "yes" && v1 {
				t.Errorf("its group was handed on: %v; it used %+v", handed, used)
			}
			own, err := second.Usage()
			if most := mostLeft(test.limits.Memory); err != nil || own.Memory > most || own.PeakMemory > most {
				t.Errorf("%+v, %v: more than %d bytes", own, err, most)
			}
			if own.Memory, own.PeakMemory = 0, 0; own != (Usage{}) {
				t.Errorf("used before it has begun: %+v", own)
			}
			guest(t, second, test.role)
			waitUsage(t, second, test.did)
		})
	}
}

// waitUsage waits until the group has used what it should.
func waitUsage(t *testing.T, g *Group, enough func(Usage) bool) Usage {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		u, err := g.Usage()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("usage %+v, %v", u, err)
		}
		if enough(u) {
			return u
		}
	}
}

// The limits of a group are its own, whatever those of the one before.
func testPoolLimits(t *testing.T, s subject) {
	const small, large = 32 << 20, 128 << 20
	for _, memory := range [][2]int64{{small, large}, {large, small}, {small, 0}, {0, small}, {small, small}} {
		p := s.pool(t)
		first := p.make(t, "r1", Limits{Memory: memory[0]})
		guest(t, first, "spin").Wait()
		p.end(t, first)
		second := p.make(t, "r2", Limits{Memory: memory[1]})
		cmd := guest(t, second, "allocate")
		cmd.Wait()
		killed := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
		u, err := second.Usage()
		if limit := memory[1]; err != nil || killed != (limit > 0) || killed && (u.PeakMemory < limit/2 || u.PeakMemory > limit+1<<20) {
			t.Errorf("%d, then %d: killed: %v, usage %+v, %v", memory[0], limit, killed, u, err)
		}
	}
}

// Who still holds a group that has ended neither sees nor harms the one that took over.
func testPoolEnded(t *testing.T, s subject) {
	p := s.pool(t)
	first := p.make(t, "r1", Limits{})
	p.end(t, first)
	if _, err := first.Usage(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("usage before the next: %v", err)
	}
	second := p.make(t, "r2", Limits{})
	guest(t, second, "sleep")
	kill(t, first)
	if err := first.Delete(); err != nil {
		t.Error(err)
	}
	if _, err := first.Usage(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("usage: %v", err)
	}
	for _, d := range second.Dirs() {
		if pids, err := listProcs([]string{d}); err != nil || len(pids) != 1 {
			t.Errorf("%s: processes %v, %v", d, pids, err)
		}
	}
}

// Few are kept, those that ended last, and they go with the parent.
func testPoolBound(t *testing.T, s subject) {
	p := s.pool(t)
	var groups []*Group
	for i := range mostSpares + 3 {
		groups = append(groups, p.make(t, fmt.Sprintf("r%d", i), Limits{}))
	}
	for _, g := range groups {
		p.end(t, g)
	}
	if _, err := p.New("bad", Limits{Pids: -1}); err == nil {
		t.Error("a negative limit is no error")
	}
	parent := &Group{path: p.parent, on: s.on}
	var kept []string
	for _, d := range parent.Dirs() {
		entries, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				kept = append(kept, filepath.Join(d, e.Name()))
			}
		}
	}
	if len(kept) > mostSpares {
		t.Errorf("left: %q", kept)
	}
	for _, g := range append(groups[:3], &Group{path: p.parent + "/bad", on: s.on}) {
		if slices.ContainsFunc(g.Dirs(), func(d string) bool { return slices.Contains(kept, d) }) {
			t.Errorf("%s is kept", g.Path())
		}
	}
	if err := parent.Delete(); err != nil {
		t.Error(err)
	}
	for _, d := range parent.Dirs() {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// A pool does without what can't be handed on, and leaves nothing of it.
func testPoolSpoilt(t *testing.T, s subject) {
	for name, spoil := range map[string]func(first, second *Group) error{
		"removed":    func(first, _ *Group) error { return first.Delete() },
		"in its way": func(_, second *Group) error { return os.Mkdir(memoryDir(second), 0o755) },
	} {
		p := s.pool(t)
		first := p.make(t, "r1", Limits{})
		p.end(t, first)
		if err := spoil(first, &Group{path: p.parent + "/r2", on: s.on}); err != nil {
			t.Fatal(err)
		}
		guest(t, p.make(t, "r2", Limits{}), "sleep")
		for _, d := range first.Dirs() {
			if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s: %v", name, d, err)
			}
		}
	}
}

// A group that holds a process is an error, and not handed on.
func testPoolBusy(t *testing.T, s subject) {
	p := s.pool(t)
	first := p.make(t, "r1", Limits{})
	guest(t, first, "sleep")
	if err := p.Delete(first); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("in use: %v", err)
	}
	before := memoryInfo(t, first)
	if os.SameFile(before, memoryInfo(t, p.make(t, "r2", Limits{}))) {
		t.Error("it was handed on")
	}
}

func testPoolMany(t *testing.T, s subject) {
	p := s.pool(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 8 {
				g, err := p.New(fmt.Sprintf("r%d-%d", i, n), Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				cmd := guest(t, g, "sleep")
				err = g.Kill(t.Context())
				cmd.Wait()
				if err := errors.Join(err, p.Delete(g)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
