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
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/work"
)

func TestDefaults(t *testing.T) {
	got, err := Options{}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if got.plan == nil || !got.plan.Net.Inet || got.plan.Net.Egress != nil {
		t.Errorf("the plan is %+v", got.plan)
	}
	got.plan, got.proxy = nil, nil // plan and proxy are tested in packages policy and egress
	want := settings{
		Options: Options{
			Permissions:  policy.Default(),
			Hostname:     "secure-exec",
			CgroupParent: "/gaol",
			Limits: Limits{
				Memory: 256 << 20, CPUs: 1, Pids: 64, OpenFiles: 1024, Disk: 64 << 20, Files: 65536, Output: 16 << 20, Value: 16 << 20,
			},
			MaxConcurrentRuns: 64,
			MaxContexts:       16,
			UnixSockets:       true,
			Network:           NetworkLimits{Connections: 1024, ConnectionsPerSec: 1000, LookupsPerSec: 500},
			Calls:             CallLimits{Calls: 100_000, Concurrent: 16, Arguments: 1 << 20, Result: 4 << 20, Timeout: 30 * time.Second},
		},
		env: map[string]string{
			"PATH": "/usr/local/bin:/usr/bin:/bin:/home/node/.local/bin", "HOME": "/home/node", "USER": "node", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
		},
		cwd:      "/workspace",
		modules:  "/workspace/node_modules",
		work:     work.InProcess,
		bindings: &hostcall.Bindings{},
		heapMiB:  168,
	}
	if DefaultLimits() != want.Limits {
		t.Errorf("DefaultLimits returned %+v", DefaultLimits())
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{}, hostcall.Bindings{}), cmp.Comparer(func(a, b *work.Domain) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResolveRefuses(t *testing.T) {
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
		{Options{MaxConcurrentRuns: -1}, "limit MaxConcurrentRuns"},
		{Options{MaxConcurrentRuns: 1 << 20}, "limit MaxConcurrentRuns"},
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
		{Options{Limits: Limits{OpenFiles: 3}}, "limit OpenFiles"},
		{Options{Limits: Limits{Disk: -1}}, "limit Disk"},
		{Options{Limits: Limits{Files: 1}}, "limit Files"},
		{Options{Limits: Limits{Output: -1}}, "limit Output"},
		{Options{Limits: Limits{Value: 1 << 40}}, "limit Value"},
		{Options{Limits: Limits{CPUTime: -time.Second}}, "limit CPUTime"},
		{Options{Limits: Limits{CPUs: -1}}, "limit CPUs"},
		{Options{Heap: 1 << 20}, "limit Heap"},
		{Options{Heap: -1}, "limit Heap"},
		{Options{Heap: 200 << 20}, "limit Heap"},
		{Options{Limits: Limits{CPUs: math.NaN()}}, "limit CPUs"},
	} {
		if _, err := tc.opts.resolve(); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: %v, want an error about %q", tc.opts, err, tc.says)
		}
	}
}

func TestResolveCopies(t *testing.T) {
	env := map[string]string{"A": "1"}
	rules := []policy.Rule{{Mode: policy.Allow, Patterns: []string{"A"}}}
	s, err := Options{Env: env, Permissions: policy.Permissions{Env: policy.Scope{Rules: rules}}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	env["A"] = "2"
	rules[0].Patterns[0] = "*"
	if s.env["A"] != "1" || s.Permissions.PassesEnv("B") {
		t.Error("the settings share memory with the caller's options")
	}
	if _, err := lowered(t, s, nodeCode(""), RunOptions{Env: map[string]string{"A": "3"}}); err != nil {
		t.Fatal(err)
	}
	if s.env["A"] != "1" {
		t.Error("a run's variables change the settings")
	}
}

func TestLower(t *testing.T) {
	s, err := Options{Limits: Limits{Memory: 512 << 20}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	p, err := lowered(t, s, nodeCode("1"), RunOptions{Args: []string{"--x"}, Name: "job.ts", Cwd: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	wantArgs := []string{enforce.NodePath, "--max-old-space-size=376", "--max-semi-space-size=32", "--require=" + guest.Prelude, "/tmp/job.ts", "--x"}
	if diff := cmp.Diff(wantArgs, p.command.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if c := p.command; c.Dir != "/tmp" || c.Args[c.Script] != "/tmp/job.ts" {
		t.Errorf("script %d in %s", c.Script, c.Dir)
	}
	p, err = lowered(t, s, imageProgram("npm", []string{"-v"}), RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(p.command.Args, []string{"npm", "-v"}) || p.code != nil {
		t.Errorf("command is %+v", p.command)
	}
}

func TestLowerRefuses(t *testing.T) {
	s, _ := Options{}.resolve()
	for _, o := range []RunOptions{
		{Name: "a/b.mjs"}, {Name: "noending"}, {Name: "a.py"}, {Name: "\xff.mjs"}, {Name: strings.Repeat("a", 300) + ".mjs"},
		{Cwd: "rel"}, {OnOutputLimit: 7}, {OnOutputLimit: -1}, {Args: []string{"a\x00"}}, {Args: []string{strings.Repeat("a", maxString)}},
		{Args: slices.Repeat([]string{strings.Repeat("a", maxString-1)}, 7)}, {Env: map[string]string{"=": ""}},
	} {
		if _, err := lowered(t, s, nodeCode(""), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := lowered(t, s, nodeCode(strings.Repeat(" ", maxProgram+1)), RunOptions{}); err == nil {
		t.Error("a program over the limit is accepted")
	}
	if _, err := lowered(t, s, imageProgram("", nil), RunOptions{}); err == nil {
		t.Error("a command without a name is accepted")
	}
	if _, err := lowered(t, s, imageProgram("ls", nil), RunOptions{Args: []string{"-l"}}); err == nil {
		t.Error("a command with arguments in two places is accepted")
	}
}

// Limit errors use the units of the options.
func TestLimitErrorUnits(t *testing.T) {
	for _, tc := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Memory: 1 << 10}, "limit Memory: 1 KiB is not between 48 MiB and 1 PiB"},
		{Limits{Disk: 1000}, "limit Disk: 1000 bytes is not between 64 KiB and 1 PiB"},
		{Limits{Pids: 1}, "limit Pids: 1 is not between 16 and 4194304"},
		{Limits{CPUTime: -time.Second}, "limit CPUTime: -1s is less than 0s"},
	} {
		if _, err := (Options{Limits: tc.limits}).resolve(); err == nil || err.Error() != tc.want {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}

func TestOptionError(t *testing.T) {
	_, err := Options{Cwd: "work"}.resolve()
	if o, ok := errors.AsType[*OptionError](err); !ok || o.Option != "Cwd" || err.Error() != "option Cwd: "+o.Err.Error() {
		t.Errorf("%v", err)
	}
}
