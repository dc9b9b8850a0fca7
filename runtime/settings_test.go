package runtime

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/vfs"
)

func TestDefaults(t *testing.T) {
	got, err := Options{}.settle()
	if err != nil {
		t.Fatal(err)
	}
	if got.plan == nil || got.plan.Net.Inet {
		t.Errorf("the plan is %+v", got.plan)
	}
	got.plan = nil // package policy tests what it says
	want := settings{
		permissions: policy.Default(),
		env: map[string]string{
			"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/node", "USER": "node", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
		},
		cwd:          "/workspace",
		hostname:     "secure-exec",
		cgroupParent: "/gaol",
		limits: Limits{
			Memory: 256 << 20, CPUs: 1, Pids: 64, Files: 1024, Disk: 64 << 20, Inodes: 16384, Output: 16 << 20, Value: 16 << 20,
		},
		concurrentRuns: 64,
		bindings:       &globals{},
		calls:          CallLimits{Calls: 100_000, Concurrent: 16, Arguments: 1 << 20, Result: 4 << 20, Timeout: 30 * time.Second},
		heapMiB:        168,
		contexts:       16,
		unixSockets:    true,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{}, globals{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettleRefuses(t *testing.T) {
	for _, tc := range []struct {
		opts Options
		says string
	}{
		{Options{Cwd: "work"}, "option Cwd"},
		{Options{Cwd: "/a/../b"}, "option Cwd"},
		{Options{Hostname: "a b"}, "option Hostname"},
		{Options{Hostname: "-a"}, "option Hostname"},
		{Options{Launcher: LauncherExec, Zygote: ZygoteOptions{Forks: 1}}, "option Zygote"},
		{Options{Hostname: strings.Repeat("a", 65)}, "option Hostname"},
		{Options{CgroupParent: "gaol"}, "option CgroupParent"},
		{Options{CgroupParent: "/a/../.."}, "option CgroupParent"},
		{Options{CgroupParent: "/"}, "option CgroupParent"},
		{Options{MaxConcurrentRuns: -1}, "option MaxConcurrentRuns"},
		{Options{MaxConcurrentRuns: 1 << 20}, "option MaxConcurrentRuns"},
		{Options{Env: map[string]string{"": "x"}}, "option Env"},
		{Options{Env: map[string]string{"A=B": "x"}}, "option Env"},
		{Options{Env: map[string]string{"A": "x\x00"}}, "option Env"},
		{Options{Env: map[string]string{"A": strings.Repeat("x", maxString)}}, "option Env"},
		{Options{Zygote: ZygoteOptions{Forks: -1}}, "option Zygote"},
		{Options{Zygote: ZygoteOptions{Age: -1}}, "option Zygote"},
		{Options{Zygote: ZygoteOptions{Patience: -1}}, "option Zygote"},
		{Options{Limits: Limits{Memory: -1}}, "limit Memory"},
		{Options{Limits: Limits{Memory: 1 << 20}}, "limit Memory"},
		{Options{Limits: Limits{Pids: 1}}, "limit Pids"},
		{Options{Limits: Limits{Files: 3}}, "limit Files"},
		{Options{Limits: Limits{Disk: -1}}, "limit Disk"},
		{Options{Limits: Limits{Inodes: 1}}, "limit Inodes"},
		{Options{Limits: Limits{Output: -1}}, "limit Output"},
		{Options{Limits: Limits{Value: 1 << 40}}, "limit Value"},
		{Options{Limits: Limits{CPUTime: -time.Second}}, "limit CPUTime"},
		{Options{Limits: Limits{CPUs: -1}}, "limit CPUs"},
		{Options{Limits: Limits{CPUs: math.NaN()}}, "limit CPUs"},
	} {
		if _, err := tc.opts.settle(); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: %v, want an error about %q", tc.opts, err, tc.says)
		}
	}
}

func TestSettleCopies(t *testing.T) {
	env := map[string]string{"A": "1"}
	rules := []policy.Rule{{Mode: policy.Allow, Patterns: []string{"A"}}}
	s, err := Options{Env: env, Permissions: policy.Permissions{Env: policy.Scope{Rules: rules}}}.settle()
	if err != nil {
		t.Fatal(err)
	}
	env["A"] = "2"
	rules[0].Patterns[0] = "*"
	if s.env["A"] != "1" || s.permissions.PassesEnv("B") {
		t.Error("what is the caller's is shared")
	}
	if _, err := s.nodeTask("", RunOptions{Env: map[string]string{"A": "3"}}, true); err != nil {
		t.Fatal(err)
	}
	if s.env["A"] != "1" {
		t.Error("a run's variables stay")
	}
}

func TestTasks(t *testing.T) {
	s, err := Options{Limits: Limits{Memory: 512 << 20}}.settle()
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.nodeTask("1", RunOptions{Args: []string{"--x"}, Name: "job.ts", Cwd: "/tmp"}, true)
	if err != nil {
		t.Fatal(err)
	}
	wantArgs := []string{"--max-old-space-size=376", "--max-semi-space-size=32", "--require=" + preludePath, "/tmp/job.ts", "--x"}
	if diff := cmp.Diff(wantArgs, task.args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if task.path != nodePath || task.dir != vfs.Path("/tmp") {
		t.Errorf("starts %s in %s", task.path, task.dir)
	}
	task, err = s.commandTask("npm", []string{"-v"}, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if task.path != "npm" || !cmp.Equal(task.args, []string{"-v"}) || task.program != nil {
		t.Errorf("command is %+v", task)
	}
}

func TestTasksRefused(t *testing.T) {
	s, _ := Options{}.settle()
	for _, o := range []RunOptions{
		{Name: "a/b.mjs"}, {Name: "noending"}, {Name: "a.py"}, {Name: "\xff.mjs"}, {Name: strings.Repeat("a", 300) + ".mjs"},
		{Cwd: "rel"}, {OnOutputLimit: 7}, {OnOutputLimit: -1}, {Args: []string{"a\x00"}}, {Args: []string{strings.Repeat("a", maxString)}},
		{Args: slices.Repeat([]string{strings.Repeat("a", maxString-1)}, 7)}, {Env: map[string]string{"=": ""}},
	} {
		if _, err := s.nodeTask("", o, true); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := s.nodeTask(strings.Repeat(" ", maxProgram+1), RunOptions{}, true); err == nil {
		t.Error("a program over the limit is accepted")
	}
	if _, err := s.commandTask("", nil, RunOptions{}); err == nil {
		t.Error("a command without a name is accepted")
	}
	if _, err := s.commandTask("ls", nil, RunOptions{Args: []string{"-l"}}); err == nil {
		t.Error("a command with arguments in two places is accepted")
	}
}

func TestHeapMiB(t *testing.T) {
	for memory, want := range map[int64][2]int64{
		48: {16, 2}, 64: {18, 2}, 96: {44, 4}, 128: {64, 8}, 192: {127, 8}, 256: {168, 16}, 512: {376, 32}, 1024: {792, 64}, 8192: {7960, 64},
	} {
		old := heapMiB(memory << 20)
		if got := [2]int64{old, semiSpaceMiB(old)}; got != want {
			t.Errorf("%d MiB: old space and semi-space of %d MiB, want %d", memory, got, want)
		}
	}
	for memory := int64(80); memory < 4096; memory++ {
		old, next := heapMiB(memory<<20), heapMiB((memory+1)<<20)
		if total := 40 + old + 3*semiSpaceMiB(old); total > memory || next < old {
			t.Errorf("%d MiB: takes %d MiB; the old space has %d MiB, and %d MiB with 1 MiB more", memory, total, old, next)
		}
	}
}

// Limits are told in the units of those who set them.
func TestLimitErrorUnits(t *testing.T) {
	for _, tc := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Memory: 1 << 10}, "limit Memory: 1 KiB is not between 48 MiB and 1 PiB"},
		{Limits{Disk: 1000}, "limit Disk: 1000 bytes is not between 64 KiB and 1 PiB"},
		{Limits{Pids: 1}, "limit Pids: 1 is not between 16 and 4194304"},
		{Limits{CPUTime: -time.Second}, "limit CPUTime: -1s is negative"},
	} {
		if _, err := (Options{Limits: tc.limits}).settle(); err == nil || err.Error() != tc.want {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}

func TestOptionError(t *testing.T) {
	_, err := Options{Cwd: "work"}.settle()
	if o, ok := errors.AsType[*OptionError](err); !ok || o.Option != "Cwd" || err.Error() != "option Cwd: "+o.Err.Error() {
		t.Errorf("%v", err)
	}
}
