package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// subject is an implementation that the contract tests run against.
type subject struct {
	name   string
	on     backend
	limits bool // false: a v2 mount beside v1, without controllers
}

// subjects returns all versions that this machine has.
func subjects(t testing.TB) []subject {
	t.Helper()
	var found []subject
	if checkV1(mountpoint) == nil {
		found = append(found, subject{"v1", newV1(mountpoint), true})
	}
	if _, err := os.Stat(mountpoint + "/unified/cgroup.procs"); err == nil {
		found = append(found, subject{"v2-empty", newV2(mountpoint+"/unified", nil), false})
	}
	if v, err := detect(mountpoint); v == V2 && err == nil {
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

// limited returns another group with limits, for subjects without controllers.
func (s subject) limited(t testing.TB, l Limits) *Group {
	t.Helper()
	return subject{"guard", newV1(mountpoint), true}.group(t, l)
}

func TestContract(t *testing.T) {
	tests := []struct {
		name   string
		run    func(*testing.T, subject)
		limits bool // needs controllers
	}{
		{"kill of an empty group", testKillEmpty, false},
		{"kill of a stopped process", testKillStopped, false},
		{"kill of a frozen group", testKillFrozen, false},
		{"freeze", testFreeze, false},
		{"kill of a fork bomb", testKillForkBomb, false},
		{"kill of a chain of forks", testKillForkChain, false},
		{"kill of deep descendants", testKillDeep, false},
		{"kill of a process whose first thread has exited", testKillHeadless, false},
		{"kill returns when its context is done", testKillContext, false},
		{"delete", testDelete, false},
		{"fifty concurrent groups", testMany, false},
		{"first groups of a parent, concurrently", testFirst, false},
		{"sweep", testSweep, false},
		{"add a bad pid", testAddBad, false},
		{"join", testJoin, false},
		{"namespace root", testNamespaceRoot, false},
		{"namespace roots leave no descriptors open", testNamespaceRootDescriptors, false},
		{"cpu is counted", testCPU, true},
		{"memory kill is counted", testMemory, true},
		{"refused forks are counted", testPids, true},
		{"limits are raised and lowered", testSetLimits, true},
		{"usage in a pool", testPoolUsage, true},
		{"limits in a pool", testPoolLimits, true},
		{"memory for a reused group of a pool", testPoolMemory, true},
		{"a group of a pool that is as good as new", testPoolReset, true},
		{"a group of a pool that differs from a new one", testPoolNotReset, true},
		{"an idle pool", testPoolIdle, false},
		{"a deleted group of a pool", testPoolDeleted, false},
		{"number of a pool's groups", testPoolBound, false},
		{"charged groups of a pool", testPoolCharged, true},
		{"a removed spare of a pool", testPoolRemoved, false},
		{"a busy group of a pool", testPoolBusy, false},
		{"concurrent groups of a pool", testPoolMany, false},
		{"identified groups of a pool", testPoolIdentified, false},
	}
	for _, s := range subjects(t) {
		for _, test := range tests {
			if test.limits && !s.limits {
				continue // TestV2Files covers these
			}
			t.Run(s.name+"/"+test.name, func(t *testing.T) { test.run(t, s) })
		}
	}
}

func testKillEmpty(t *testing.T, s subject) {
	kill(t, s.group(t, Limits{}))
	kill(t, &Group{path: testPath(), on: s.on}) // was never created
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

// Kill works on a group that another process has frozen.
func testKillFrozen(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	g := s.at(t, parent.Path()+"/child", Limits{})
	guest(t, g, "sleep")
	if err := g.SetFrozen(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	kill(t, parent)
}

// Frozen processes use no processor time until they continue. A missing group cannot be frozen, and need not be.
func testFreeze(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	cmd, out := startShell(t, `for f; do echo 0 >"$f" || exit 1; done; echo; while :; do :; done`, joinFiles(g))
	out.Read(make([]byte, 1)) // the script has joined or failed
	used := func() string {
		text, _ := kernfile.ReadFile(fmt.Sprintf("/proc/%d/schedstat", cmd.Process.Pid))
		time, _, _ := strings.Cut(string(text), " ")
		return time
	}
	for range 3 {
		if err := errors.Join(g.SetFrozen(t.Context(), true), g.SetFrozen(t.Context(), true)); err != nil {
			t.Fatal(err)
		}
		before := used()
		time.Sleep(20 * time.Millisecond)
		if now := used(); now != before {
			t.Errorf("it used %s ns, then %s", before, now)
		}
		if err := g.SetFrozen(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); used() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it does not continue")
			}
		}
	}
	if err := (&Group{path: testPath(), on: s.on}).SetFrozen(t.Context(), true); err != nil {
		t.Error(err)
	}
}

func testKillForkBomb(t *testing.T, s subject) {
	const pids = 40
	for range 5 { // several tries at a race
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

func testKillForkChain(t *testing.T, s subject) {
	for range 5 { // several tries at a race
		g := s.group(t, Limits{})
		guest(t, g, "forkchain").Wait()
		began := time.Now()
		kill(t, g)
		t.Logf("killed in %v", time.Since(began))
	}
}

func testKillDeep(t *testing.T, s subject) {
	top := s.group(t, Limits{})
	path := top.Path()
	for range 5 {
		path += "/d"
		// In a leaf: on v2 a group with processes can't have children with controllers.
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

// A process whose first thread has ended continues with its other threads.
func testKillHeadless(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	g := s.at(t, parent.Path()+"/child", Limits{})
	cmd := guest(t, g, "headless")
	stat := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(stat)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the first thread has not ended: %s, %v", text, err)
		}
		if strings.Contains(string(text), ") Z ") {
			break
		}
	}
	if pids, err := listProcs(g.Dirs()[:1]); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Fatalf("%v, %v: this test proves nothing", pids, err)
	}
	kill(t, parent)
}

func testKillContext(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	guest(t, g, "sleep")
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	// Kill may also succeed before it looks at ctx.
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

// The first groups below a parent have their limits, also when they are created concurrently.
func testFirst(t *testing.T, s subject) {
	var l Limits
	if s.limits {
		l = Limits{Memory: 1 << 20, CPUs: 1, Pids: 8}
	}
	for range 20 {
		parent := testPath()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				g, err := newGroup(s.on, fmt.Sprintf("%s/sub/r%d", parent, i), l)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := g.Usage(); err != nil && s.limits {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := (&Group{path: parent, on: s.on}).Delete(); err != nil {
			t.Error(err)
		}
	}
}

func testSweep(t *testing.T, s subject) {
	parent := s.group(t, Limits{})
	left, kept := s.at(t, parent.Path()+"/left", Limits{}), s.at(t, parent.Path()+"/kept", Limits{})
	guest(t, left, "sleep")
	// Sweep finds a group that exists in one hierarchy only.
	half := left.Dirs()[len(left.Dirs())-1] + "half"
	if err := os.Mkdir(half, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := parent.Sweep(t.Context(), func(name string) bool { return name == "kept" }); err != nil {
		t.Error(err)
	}
	for _, dir := range parent.Dirs() {
		got, err := filepath.Glob(dir + "/*/cgroup.procs")
		if err != nil || len(got) != 1 || filepath.Base(filepath.Dir(got[0])) != filepath.Base(kept.Path()) {
			t.Errorf("left: %v, %v", got, err)
		}
	}
	if err := (&Group{path: testPath(), on: s.on}).Sweep(t.Context(), nil); err != nil {
		t.Errorf("missing parent: %v", err)
	}
}

func testAddBad(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	for _, pid := range []int{-1, 0, 1 << 30} {
		if err := g.AddPID(pid); err == nil {
			t.Errorf("added pid %d", pid)
		}
	}
	never := &Group{path: testPath(), on: s.on}
	if err := never.AddPID(os.Getpid()); err == nil || strings.Contains(err.Error(), "permission") {
		t.Errorf("missing group: %v", err)
	}
}

// startShell starts a script that is killed when the test ends.
func startShell(t *testing.T, script string, args []string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, out
}

// joinFiles returns the files by which a process with a single thread moves itself into g.
func joinFiles(g *Group) (files []string) {
	for _, d := range g.Dirs() {
		file := d + "/tasks"
		if _, err := os.Stat(file); err != nil { // not with v2
			file = d + "/" + procsFile
		}
		files = append(files, file)
	}
	return files
}

func testJoin(t *testing.T, s subject) {
	g := s.group(t, Limits{})
	script := `for f; do echo 0 >"$f" || exit 1; done; echo; exec sleep 60`
	cmd, out := startShell(t, script, joinFiles(g))
	out.Read(make([]byte, 1)) // the script has joined or failed
	for _, d := range g.Dirs() {
		if pids, err := listProcs([]string{d}); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
			t.Errorf("%s: %v, %v; want %d", d, pids, err, cmd.Process.Pid)
		}
	}
	kill(t, g)
}

// Limits can be replaced, in both directions.
func testSetLimits(t *testing.T, s subject) {
	g := s.group(t, Limits{Memory: 64 << 20, CPUs: 1, Pids: 8})
	for _, l := range []Limits{{Memory: 256 << 20, CPUs: 2, Pids: 64}, {Memory: 32 << 20, CPUs: 0.5, Pids: 4}} {
		if err := g.SetLimits(l); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			for _, dir := range g.Dirs() {
				var n int64
				if err := readInt(&n, filepath.Join(dir, file)); err == nil && n != l.Memory {
					t.Errorf("%s: %d, want %d", file, n, l.Memory)
				}
			}
		}
	}
	if err := g.SetLimits(Limits{Memory: -1}); err == nil {
		t.Error("a negative limit was set")
	}
}
