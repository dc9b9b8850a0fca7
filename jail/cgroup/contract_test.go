package cgroup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// subject is one implementation that the contract is held against.
type subject struct {
	name   string
	on     backend
	limits bool // false: a v2 mount beside v1, which has all the controllers
}

// subjects are all versions that this machine has.
func subjects(t testing.TB) []subject {
	t.Helper()
	var found []subject
	if lookV1(mountpoint) == nil {
		found = append(found, subject{"v1", newV1(mountpoint), true})
	}
	if _, err := os.Stat(mountpoint + "/unified/cgroup.procs"); err == nil {
		found = append(found, subject{"v2-empty", newV2(mountpoint+"/unified", nil), false})
	}
	if v, err := look(mountpoint); v == V2 && err == nil {
		found = append(found, subject{"v2", newV2(mountpoint, controllersV2), true})
	}
	if found == nil {
		t.Fatal("no version to test")
	}
	return found
}

func (s subject) group(t testing.TB, l Limits) *Group {
	t.Helper()
	return s.at(t, testPath(), l)
}

func (s subject) at(t testing.TB, path string, l Limits) *Group {
	t.Helper()
	if !s.limits {
		l = Limits{}
	}
	g, err := newGroup(s.on, path, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill(t, g)
		if err := g.Delete(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// limited is a limited group in addition, where the subject can't limit.
func (s subject) limited(t testing.TB, l Limits) *Group {
	t.Helper()
	return subject{"guard", newV1(mountpoint), true}.group(t, l)
}

func TestContract(t *testing.T) {
	tests := []struct {
		name   string
		run    func(*testing.T, subject)
		limits bool // is about limits and what is counted with them
	}{
		{"kill of nothing", testKillNothing, false},
		{"kill of a stopped process", testKillStopped, false},
		{"kill of a frozen group", testKillFrozen, false},
		{"kill of a fork bomb", testKillForkBomb, false},
		{"kill of deep descendants", testKillDeep, false},
		{"kill ends with its context", testKillContext, false},
		{"delete", testDelete, false},
		{"fifty at once", testMany, false},
		{"sweep", testSweep, false},
		{"add a bad pid", testAddBad, false},
		{"join", testJoin, false},
		{"cpu is counted", testCPU, true},
		{"memory kill is counted", testMemory, true},
		{"refused forks are counted", testPids, true},
	}
	for _, s := range subjects(t) {
		for _, test := range tests {
			if test.limits && !s.limits {
				continue // TestV2Files stands in
			}
			t.Run(s.name+"/"+test.name, func(t *testing.T) { test.run(t, s) })
		}
	}
}

func testKillNothing(t *testing.T, s subject) {
	kill(t, s.group(t, Limits{}))
	kill(t, &Group{path: testPath(), on: s.on}) // was never made
}

func testKillStopped(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	cmd := guest(t, g, "stop")
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("not stopped: %v, %v", ws, err)
	}
	kill(t, g)
	cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != unix.SIGKILL {
		t.Errorf("ended by %v", got)
	}
}

// A process that crashed in the middle of Kill leaves the group frozen.
func testKillFrozen(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	g := s.at(t, parent.Path()+"/child", Limits{})
	guest(t, g, "sleep")
	if v, ok := s.on.(*v1); ok {
		if err := v.freeze(v.dir("freezer", g.path)); err != nil {
			t.Fatal(err)
		}
	} else if err := writeFile(g.Dirs()[0]+"/cgroup.freeze", "1"); err != nil {
		t.Fatal(err)
	}
	kill(t, parent)
}

func testKillForkBomb(t *testing.T, s subject) {
	const pids = 40
	for range 5 { // it is a race
		g := s.group(t, Limits{Pids: pids})
		var guard []*Group
		if !s.limits {
			guard = append(guard, s.limited(t, Limits{Pids: pids}))
		}
		guest(t, g, "forkbomb", guard...)
		waitFor(t, g, pids/2)
		began := time.Now()
		kill(t, g)
		t.Logf("killed in %v", time.Since(began))
		if left, err := listProcs(g.Dirs()); err != nil || left != nil {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

func testKillDeep(t *testing.T, s subject) {
	top := s.group(t, Limits{})
	path := top.Path()
	for range 5 {
		path += "/d"
		// Not in the chain itself: on v2 a group that holds processes has no
		// children with controllers.
		g, err := newGroup(s.on, path+"/leaf", Limits{})
		if err != nil {
			t.Fatal(err)
		}
		guest(t, g, "sleep")
	}
	kill(t, top)
	if err := top.Delete(); err != nil {
		t.Error(err)
	}
	for _, d := range top.Dirs() {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

func testKillContext(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	guest(t, g, "sleep")
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	// Being over before it could look is fine too.
	if err := g.Kill(ctx); err != nil && !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func testDelete(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	g := s.at(t, parent.Path()+"/a", Limits{})
	guest(t, g, "sleep")
	if err := parent.Delete(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("in use: %v", err)
	}
	kill(t, g)
	for range 2 {
		if err := parent.Delete(); err != nil {
			t.Error(err)
		}
	}
	if _, err := g.Usage(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("usage of a deleted group: %v", err)
	}
}

func testMany(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			g, err := newGroup(s.on, filepath.Join(parent.Path(), string(rune('A'+i)), "r"), Limits{})
			if err != nil {
				t.Error(err)
				return
			}
			cmd := guest(t, g, "sleep")
			if err := g.Kill(t.Context()); err != nil {
				t.Error(err)
			}
			cmd.Wait()
			if err := g.Delete(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func testSweep(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	left, kept := s.at(t, parent.Path()+"/left", Limits{}), s.at(t, parent.Path()+"/kept", Limits{})
	guest(t, left, "sleep")
	// One hierarchy is enough to be found.
	half := left.Dirs()[len(left.Dirs())-1] + "half"
	if err := os.Mkdir(half, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sweep(t.Context(), s.on, parent.Path(), func(name string) bool { return name == "kept" }); err != nil {
		t.Error(err)
	}
	got, err := children(s.on, parent.Path())
	if err != nil || len(got) != 1 || !got[filepath.Base(kept.Path())] {
		t.Errorf("left: %v, %v", got, err)
	}
	if err := sweep(t.Context(), s.on, testPath(), nil); err != nil {
		t.Errorf("missing parent: %v", err)
	}
}

func testAddBad(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	for _, pid := range []int{-1, 0, 1 << 30} {
		if err := g.AddPID(pid); err == nil {
			t.Errorf("pid %d was added", pid)
		}
	}
	never := &Group{path: testPath(), on: s.on}
	if err := never.AddPID(os.Getpid()); err == nil || strings.Contains(err.Error(), "permission") {
		t.Errorf("missing group: %v", err)
	}
}

func testJoin(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	script := `for f; do echo 0 >"$f" || exit 1; done; echo; exec sleep 60`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, g.JoinFiles()...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	out.Read(make([]byte, 1)) // it has joined, or failed
	for _, d := range g.Dirs() {
		if pids, err := listProcs([]string{d}); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
			t.Errorf("%s: %v, %v; want %d", d, pids, err, cmd.Process.Pid)
		}
	}
	kill(t, g)
}
