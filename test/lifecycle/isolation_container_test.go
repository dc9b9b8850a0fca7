package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// container makes a sandbox that is a container of runc.
func container(t *testing.T, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	o.Isolation, o.OCI.Runtime = runtime.IsolationOCI, harness.Runc(t)
	return harness.Create(t, o)
}

// run runs the program of the README's first screen, and returns its output without the
// figures that differ from run to run.
func run(t *testing.T, isolation string) (printed map[string]any) {
	t.Helper()
	out, err := exec.Command(harness.Gaol(t), "run", "--isolation", isolation, "--launcher", "exec", "--json", "../../cmd/gaol/testdata/fibonacci.mjs").Output()
	if err != nil {
		t.Fatalf("%s: %v", isolation, err)
	}
	if err := json.Unmarshal(out, &printed); err != nil {
		t.Fatalf("%s: %s: %v", isolation, out, err)
	}
	delete(printed, "durationMs")
	delete(printed, "usage")
	return printed
}

func TestSameOutput(t *testing.T) {
	harness.Runc(t)
	if diff := cmp.Diff(run(t, "native"), run(t, "runc")); diff != "" {
		t.Errorf("native and runc: %s", diff)
	}
}

// A program sees the same user, rights, limits and folders in each isolation.
func TestSameView(t *testing.T) {
	if harness.InGVisor() {
		t.Skip("test/gvisor compares gVisor with native sandboxes")
	}
	const program = `
		import fs from 'node:fs'; import os from 'node:os'; import { execSync } from 'node:child_process'
		const status = fs.readFileSync('/proc/self/status', 'utf8')
		const field = (name) => status.match(new RegExp('^' + name + ':[ \\t]*(.*)$', 'm'))[1]
		__return({
			user: os.userInfo(), host: os.hostname(), cwd: process.cwd(), env: process.env,
			rights: ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Groups'].map(field),
			memory: process.constrainedMemory(), total: os.totalmem(), processors: os.availableParallelism(),
			limits: fs.readFileSync('/proc/self/limits', 'utf8'), dev: fs.readdirSync('/dev'), root: fs.readdirSync('/'),
			interfaces: Object.keys(os.networkInterfaces()), loginuid: execSync('id', { encoding: 'utf8' }),
		})`
	var got [2]any
	for i, rt := range []*runtime.NodeRuntime{harness.Create(t, runtime.Options{Launcher: runtime.LauncherExec}), container(t, runtime.Options{})} {
		if err := harness.Run(t, rt, program, runtime.RunOptions{}).Decode(&got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("native and runc: %s", diff)
	}
}

// The container's own filter holds under the run's.
func TestContainerHasFilter(t *testing.T) {
	rt := container(t, runtime.Options{})
	var filters int
	res := harness.Run(t, rt, `__return(+require('fs').readFileSync('/proc/self/status', 'utf8').match(/Seccomp_filters:\s*(\d+)/)[1])`, runtime.RunOptions{})
	if err := res.Decode(&filters); err != nil || filters != 2 {
		t.Errorf("%d filters, %v, want that of the container and that of the run", filters, err)
	}
}

func TestContainerEnds(t *testing.T) {
	tier.Soak(t)
	rt := container(t, runtime.Options{Limits: runtime.Limits{Memory: 64 << 20, Pids: 20}})
	for name, tc := range map[string]struct {
		program string
		options runtime.RunOptions
		want    runtime.Cause
		code    int
	}{
		"exit":    {`process.exit(137)`, runtime.RunOptions{}, runtime.CauseNone, 137},
		"signal":  {`process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)`, runtime.RunOptions{}, runtime.CauseSignal, 143},
		"timeout": {`setInterval(() => {}, 1000)`, runtime.RunOptions{Timeout: 2 * time.Second}, runtime.CauseTimeout, 137},
		"memory":  {`const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))`, runtime.RunOptions{}, runtime.CauseMemory, 137},
	} {
		res, err := rt.Exec(t.Context(), tc.program, tc.options)
		if err != nil || res.Cause != tc.want || res.ExitCode != tc.code || res.Launcher != runtime.LauncherExec {
			t.Errorf("%s: %+v, %v, want cause %q and exit code %d", name, res, err, tc.want, tc.code)
		}
	}
	rt = container(t, runtime.Options{Limits: runtime.Limits{CPUTime: time.Second}})
	if res, err := rt.Exec(t.Context(), `for (;;);`, runtime.RunOptions{}); err != nil || res.Cause != runtime.CauseCPU || res.ExitCode != 137 {
		t.Errorf("cpu: %+v, %v, want cause %q", res, err, runtime.CauseCPU)
	}
}

func TestContainerDenies(t *testing.T) {
	rt := container(t, runtime.Options{Permissions: policy.Strict()})
	res := harness.Run(t, rt, `
		const tried = []
		const attempt = (name, f) => { try { f(); tried.push(name) } catch {} }
		attempt('read', () => require('fs').readFileSync('/etc/passwd'))
		attempt('spawn', () => { if (require('child_process').spawnSync('true').status === 0) return; throw 1 })
		attempt('signal', () => process.kill(1, 0))
		__return(tried)`, runtime.RunOptions{})
	if string(res.Value) != "[]" || len(res.Denials) == 0 {
		t.Errorf("%s succeeded; denials: %+v", res.Value, res.Denials)
	}
}

// A runtime that fails reports why, and leaves nothing behind.
func TestRuntimeFails(t *testing.T) {
	o := harness.Options(runtime.Options{Isolation: runtime.IsolationOCI, OCI: runtime.OCIOptions{Runtime: "/bin/false"}})
	rt, err := runtime.Create(t.Context(), o)
	if err == nil {
		err = errors.Join(errors.New("it was created"), rt.Close())
	}
	if !strings.Contains(err.Error(), "/bin/false") {
		t.Errorf("%v, want the runtime's path", err)
	}
}

// Where systemd is the machine's init, it makes the container's cgroup; elsewhere the runtime refuses.
func TestContainerOfSystemd(t *testing.T) {
	const scopes = "/sys/fs/cgroup/*/*/gaol-j*.scope" // v1: in each hierarchy
	find := func() []string {
		old, _ := filepath.Glob(scopes)
		unified, _ := filepath.Glob("/sys/fs/cgroup/system.slice/gaol-j*.scope")
		return append(old, unified...)
	}
	o := harness.Options(runtime.Options{Isolation: runtime.IsolationOCI, OCI: runtime.OCIOptions{Runtime: harness.Runc(t), SystemdCgroup: true}})
	rt, err := runtime.Create(t.Context(), o)
	if _, missing := os.Stat("/run/systemd/system"); missing != nil {
		if err == nil || !strings.Contains(err.Error(), "systemd not running") {
			t.Errorf("created without systemd: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(find()) == 0 {
		t.Error("there is no scope")
	}
	if res := harness.Run(t, rt, `__return(process.constrainedMemory())`, runtime.RunOptions{}); string(res.Value) != strconv.FormatInt(256<<20, 10) {
		t.Errorf("limit of memory: %s", res.Value)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	harness.WaitFor(t, "systemd to remove the scope", func() bool { return len(find()) == 0 })
}

// Sandboxes whose creation or start of a process is canceled, whose process or supervisor is killed, or
// that are closed while a process runs, leave nothing behind: harness.Main looks for it. To make more:
// GAOL_TEST_KILLS=500
func TestManyContainers(t *testing.T) {
	tier.Alone(t)
	o := harness.Options(runtime.Options{Isolation: runtime.IsolationOCI, OCI: runtime.OCIOptions{Runtime: harness.Runc(t)}})
	canceled := 0
	for i := range harness.Count(t, harness.KillsVar, harness.Fewer(30, 8)) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if i%2 == 1 {
			time.AfterFunc(time.Duration(rand.IntN(200))*time.Millisecond, cancel) // at any moment of Create or Spawn, or after them
		}
		rt, err := runtime.Create(ctx, o)
		if errors.Is(err, context.Canceled) {
			canceled++
			continue
		}
		if err != nil {
			t.Fatalf("sandbox %d: %v", i, err)
		}
		p, err := rt.Spawn(ctx, "sleep", []string{"1000"}, runtime.SpawnOptions{})
		switch {
		case errors.Is(err, context.Canceled):
			canceled++
		case err != nil:
			t.Fatalf("sandbox %d: %v", i, err)
		case i%4 == 0:
			p.Kill()
		case i%4 == 2:
			killSupervisor(t)
		}
		if err := rt.Close(); err != nil {
			t.Errorf("sandbox %d: %v", i, err)
		}
	}
	t.Logf("%d were canceled", canceled)
}

// killSupervisor kills one of this process's children, which are supervisors: that of pid 1 of a
// container or that of a process.
func killSupervisor(t *testing.T) {
	t.Helper()
	var children []string
	for _, path := range harness.Glob("/proc/self/task/*/children") {
		children = append(children, strings.Fields(harness.Lines(path)[0])...)
	}
	if len(children) == 0 {
		t.Error("there is no supervisor")
		return
	}
	pid, err := strconv.Atoi(children[rand.IntN(len(children))])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Errorf("supervisor: %v", err)
	}
}
