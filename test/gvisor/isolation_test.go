package gvisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// needRunsc makes runsc and gaol available to sandboxes of this process.
func needRunsc(t *testing.T) {
	t.Helper()
	if os.Getenv(runscVar) == "" {
		t.Skip("make test-gvisor runs this test")
	}
	t.Setenv("PATH", filepath.Dir(harness.Gaol(t))+":"+filepath.Dir(os.Getenv(runscVar))+":"+os.Getenv("PATH"))
}

// runIn returns the output of gaol run --json, without times and the use of resources.
func runIn(t *testing.T, isolation string, args ...string) object {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), append([]string{"run", "--json", "--isolation", isolation}, args...)...)
	cmd.Stderr = os.Stderr
	out, _ := cmd.Output() // gaol exits with the program's code
	var o object
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	delete(o, "durationMs")
	delete(o, "usage")
	return o
}

// A program has the same result in gVisor as on the host.
func TestSameAsNative(t *testing.T) {
	needRunsc(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"value":      {"-e", `console.log('out'); console.error('err'); __return({ a: [1, null, 'x'] })`},
		"thrown":     {"-e", `throw new Error('thrown')`},
		"rejected":   {"-e", `Promise.reject(new Error('rejected'))`},
		"exit code":  {"-e", `setTimeout(() => process.exit(7), 10)`},
		"signal":     {"-e", `process.kill(process.pid, 'SIGSEGV')`},
		"timeout":    {"--timeout", "1s", "-e", `for (;;);`},
		"memory":     {"--memory", "96m", "-e", `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`},
		"a child":    {"-e", `__return(require('node:child_process').execSync('id; pwd; env | sort').toString())`},
		"owners":     {"-e", `const fs = require('node:fs'); __return(['/', '/usr', '/etc/passwd', '/workspace', '/dev/null'].map((at) => { const s = fs.statSync(at); return [s.uid, s.gid, s.mode] }))`},
		"refusals":   {"-e", `const fs = require('node:fs'); const refused = (f) => { try { f(); } catch (err) { return err.code; } }; __return([refused(() => fs.writeFileSync('/etc/x', '')), refused(() => fs.readdirSync('/root/x'))])`},
		"no network": {"-e", `fetch('http://203.0.113.1/').catch((err) => __return(err.cause.code))`},
		"mount":      {"--mount", dir + ":/data:ro", "-e", `const fs = require('node:fs'); let code; try { fs.writeFileSync('/data/x', '') } catch (err) { code = err.code } __return([fs.readFileSync('/data/file', 'utf8'), fs.statSync('/data/file').uid, code])`},
	} {
		for _, launcher := range []string{"zygote", "exec"} {
			t.Run(name+"/"+launcher, func(t *testing.T) {
				args := append([]string{"--launcher", launcher}, args...)
				if diff := cmp.Diff(runIn(t, "native", args...), runIn(t, "gvisor", args...)); diff != "" {
					t.Errorf("-native +gvisor:\n%s", diff)
				}
			})
		}
	}
}

// create makes a sandbox, after whose end nothing may be left.
func create(t *testing.T, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	needRunsc(t)
	before := harness.TakeInventory()
	t.Cleanup(func() { before.CheckLeaks(t) })
	o.Isolation = runtime.IsolationGVisor
	return harness.Create(t, o)
}

// The runs of a sandbox share its tree, which the host can access, and call functions of the host.
func TestSandbox(t *testing.T) {
	rt := create(t, runtime.Options{Bindings: map[string]any{"double": runtime.Function{Call: func(_ context.Context, args json.RawMessage) (any, error) {
		var list []int
		err := json.Unmarshal(args, &list)
		return 2 * list[0], err
	}}}})
	for _, tc := range []struct{ code, want string }{
		{`require('node:fs').writeFileSync('a', 'kept'); __return(require('node:fs').readFileSync('/proc/version', 'utf8').includes('gvisor'))`, "true"},
		{`__return(require('node:fs').readFileSync('a', 'utf8'))`, `"kept"`},
		{`__return(double(21))`, "42"},
	} {
		res := harness.Run(t, rt, tc.code, runtime.RunOptions{})
		if string(res.Value) != tc.want || res.Launcher != runtime.LauncherZygote {
			t.Errorf("%s: %s, launcher %v, %s", tc.code, res.Value, res.Launcher, res.Stderr)
		}
	}
	if text, err := rt.FS().ReadFile("/workspace/a"); string(text) != "kept" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := rt.FS().WriteFile("/workspace/b", []byte("the host's"), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	p, err := rt.Spawn(t.Context(), "sh", []string{"-c", "read line; echo $line; cat b"}, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(p.Stdin, "a line\n")
	out, failed := io.ReadAll(p.Stdout)
	if string(out) != "a line\nthe host's" || err != nil || failed != nil {
		t.Errorf("%q, %v, %v", out, err, failed)
	}
	if res, err := p.Wait(t.Context()); err != nil || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// A guest's files in a folder of the host belong to the folder's owner.
func TestMounts(t *testing.T) {
	needRunsc(t)
	dir := t.TempDir()
	const owner = 4321
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, owner, owner)); err != nil {
		t.Fatal(err)
	}
	const write = `const fs = require('node:fs'); fs.mkdirSync('/data/' + name); fs.writeFileSync('/data/' + name + '/file', 'text'); __return(fs.statSync('/data/' + name + '/file').uid)`
	for access, written := range map[runtime.Access]bool{runtime.ReadWrite: true, runtime.CopyOnWrite: false} {
		rt := create(t, runtime.Options{Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: access}}})
		name := map[bool]string{true: "kept", false: "lost"}[written]
		if res := harness.Run(t, rt, "const name = '"+name+"'; "+write, runtime.RunOptions{}); string(res.Value) != "1000" {
			t.Errorf("access %v: %s, %s", access, res.Value, res.Stderr)
		}
		var info unix.Stat_t
		err := unix.Stat(filepath.Join(dir, name, "file"), &info)
		if (err == nil) != written || written && (info.Uid != owner || info.Gid != owner) {
			t.Errorf("access %v: owner %d, %d, %v", access, info.Uid, info.Gid, err)
		}
	}
}

// If a sandbox uses all of its memory, which its agent did not prevent, it ends, and the run's cause is memory.
func TestMemoryOfSandbox(t *testing.T) {
	rt := create(t, runtime.Options{Limits: runtime.Limits{Memory: 64 << 20, Disk: 1 << 20}})
	const fill = `const fs = require('node:fs'); for (let i = 0; ; i++) fs.mkdirSync('/tmp/' + i + 'x'.repeat(200))` // in gVisor itself
	res, err := rt.Run(t.Context(), fill, runtime.RunOptions{Timeout: time.Minute})
	if err != nil || res.Cause != runtime.CauseMemory {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := rt.Run(t.Context(), "1", runtime.RunOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// What gVisor lacks is refused before anything is made.
func TestRefused(t *testing.T) {
	needRunsc(t)
	denyWriting := policy.Workspace("/workspace")
	for feature, o := range map[runtime.Feature]runtime.Options{
		runtime.FeatureCommands: {Commands: map[string]runtime.HostCommand{}},
		runtime.FeatureLandlock: {Permissions: denyWriting},
		runtime.FeatureFiles:    {Limits: runtime.Limits{Files: 100}},
		runtime.FeatureAudit:    {AuditDenials: true},
		runtime.FeatureOCI:      {OCI: runtime.OCIOptions{Runtime: "runc"}},
	} {
		o.Isolation = runtime.IsolationGVisor
		_, err := runtime.Create(t.Context(), harness.Options(o))
		u, ok := errors.AsType[*runtime.UnsupportedError](err)
		if !ok || u.Feature != feature || !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("%s: %v", feature, err)
		}
	}
	rt := create(t, runtime.Options{Permissions: denyWriting, AllowDegraded: true})
	if missing := rt.Missing(); len(missing) == 0 || !strings.Contains(missing[0], "Landlock") {
		t.Errorf("%q", missing)
	}
}

// Runs whose permissions are narrower are refused, too.
func TestNarrowedRun(t *testing.T) {
	rt := create(t, runtime.Options{})
	_, err := rt.Run(t.Context(), "1", runtime.RunOptions{Permissions: policy.Permissions{Process: policy.Scope{Default: policy.Deny}}})
	if !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// If permissions deny childProcess, forked programs run, and others are refused: filters cannot admit the first one.
func TestNoPrograms(t *testing.T) {
	none := policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}
	rt := create(t, runtime.Options{Permissions: none})
	const spawn = `__return(require('node:child_process').spawnSync('true').error.code)`
	if res := harness.Run(t, rt, spawn, runtime.RunOptions{}); string(res.Value) != `"EPERM"` {
		t.Errorf("%s, %s", res.Value, res.Stderr)
	}
	refused := map[string]error{}
	_, refused["Command"] = rt.Command(t.Context(), "true", nil, runtime.RunOptions{})
	_, refused["Spawn"] = rt.Spawn(t.Context(), "true", nil, runtime.SpawnOptions{})
	_, refused["a terminal"] = rt.SpawnCode(t.Context(), "1", runtime.SpawnOptions{Terminal: &runtime.Terminal{}})
	_, refused["a run of a sandbox"] = create(t, runtime.Options{}).Command(t.Context(), "true", nil, runtime.RunOptions{Permissions: none})
	for name, err := range refused {
		if u, ok := errors.AsType[*runtime.UnsupportedError](err); !ok || u.Feature != runtime.FeatureExec {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hostVar makes this program a host with one run. Its value is the parent of cgroups.
const hostVar = "GAOL_TEST_GVISOR_HOST"

// beHost makes a run until it is killed.
func beHost(parent string) {
	rt, err := runtime.Create(context.Background(), runtime.Options{Isolation: runtime.IsolationGVisor, CgroupParent: parent})
	if err == nil {
		_, err = rt.Run(context.Background(), `console.log('runs'); setInterval(() => {}, 1000)`, runtime.RunOptions{OnStdout: func(text []byte) { _, _ = os.Stdout.Write(text) }})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A host that is killed leaves no process, and the next one removes its files and cgroups.
func TestKilledHost(t *testing.T) {
	needRunsc(t)
	before := harness.TakeInventory()
	host := exec.CommandContext(t.Context(), "/proc/self/exe")
	host.Env, host.Stderr = append(os.Environ(), hostVar+"="+harness.Parent), os.Stderr
	out, err := host.StdoutPipe()
	if err == nil {
		err = host.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	harness.Expect(t, bufio.NewReader(out), "runs\n")
	if len(harness.JailProcesses()) < 2 {
		t.Error("there are no processes of gVisor in the cgroups")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	harness.WaitFor(t, "the processes have ended", func() bool { return len(harness.JailProcesses()) == 0 })
	if out, err := exec.CommandContext(t.Context(), harness.Gaol(t), "run", "-e", "1").CombinedOutput(); err != nil { // it sweeps
		t.Errorf("%v: %s", err, out)
	}
	before.CheckLeaks(t)
}

// BenchmarkRun compares a run in an existing sandbox, and one in a new sandbox, with bare Node.
func BenchmarkRun(b *testing.B) {
	if os.Getenv(runscVar) == "" {
		b.Skip("make test-gvisor builds runsc")
	}
	b.Setenv("PATH", filepath.Dir(harness.Gaol(b))+":"+filepath.Dir(os.Getenv(runscVar))+":"+os.Getenv("PATH"))
	o := harness.Options(runtime.Options{Isolation: runtime.IsolationGVisor})
	rt := harness.Create(b, o)
	run := func(rt *runtime.NodeRuntime) { harness.Run(b, rt, `__return(1)`, runtime.RunOptions{}) }
	run(rt)
	var warm, cold, bare []time.Duration
	measure := func(list *[]time.Duration, f func()) {
		began := time.Now()
		f()
		*list = append(*list, time.Since(began))
	}
	node := filepath.Join(harness.DefaultImage(b).Root(), "usr/local/bin/node")
	for b.Loop() {
		measure(&warm, func() { run(rt) })
		measure(&bare, func() {
			if err := exec.CommandContext(b.Context(), node, "-e", "0").Run(); err != nil {
				b.Fatal(err)
			}
		})
		measure(&cold, func() {
			rt, err := runtime.Create(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			run(rt)
			if err := rt.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
	base := median(bare)
	b.ReportMetric(float64(base.Microseconds())/1000, "node-ms")
	b.ReportMetric(float64(median(warm))/float64(base), "warm/node")
	b.ReportMetric(float64(median(cold))/float64(base), "cold/node")
}

// median returns the middle one of some times.
func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
