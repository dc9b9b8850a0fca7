package microvm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
	"gaol/vfs/hostfs"
)

func TestMain(m *testing.M) {
	if parent := os.Getenv(hostVar); parent != "" {
		beHost(parent)
	}
	os.Exit(internettest.Main(func() int { return harness.RunTests(m) }))
}

// needMachines skips the test unless the tests' sandboxes are in virtual machines.
func needMachines(t *testing.T) {
	t.Helper()
	if !harness.InMicroVM() {
		t.Skip("make test-microvm runs this test")
	}
}

// runIn returns the output of gaol run --json, without times and the use of resources.
func runIn(t *testing.T, isolation string, args ...string) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), append([]string{"run", "--json", "--isolation", isolation}, args...)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader("a line\n"), os.Stderr
	out, _ := cmd.Output() // gaol exits with the program's code
	var o map[string]any
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	delete(o, "durationMs")
	delete(o, "usage")
	o["exit status"] = cmd.ProcessState.ExitCode()
	return o
}

// Programs end in a virtual machine as they do on the host.
func TestSameAsNative(t *testing.T) {
	needMachines(t)
	for name, args := range map[string][]string{
		"value":      {"-e", `process.stdin.on('data', (text) => console.log(String(text))); console.error('err'); process.on('exit', () => __return({ a: [1, null, 'x'], version: process.version }))`},
		"thrown":     {"-e", `throw new Error('thrown')`},
		"exit code":  {"-e", `Promise.reject(new Error('rejected')).catch(() => process.exit(7))`},
		"signal":     {"-e", `process.kill(process.pid, 'SIGSEGV')`},
		"timeout":    {"--timeout", "15s", "-e", `for (;;);`},
		"memory":     {"--memory", "96m", "-e", `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`},
		"view":       {"-e", `const fs = require('node:fs'); __return([require('node:child_process').execSync('id; pwd; env | sort').toString(), ['/', '/usr', '/etc/passwd', '/workspace', '/dev/null'].map((at) => { const s = fs.statSync(at); return [s.uid, s.gid, s.mode] })])`},
		"no network": {"-e", `fetch('http://203.0.113.1/').catch((err) => __return(err.cause.code))`},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "timeout" {
				args = append([]string{"--timeout", "5m"}, args...)
			}
			if diff := cmp.Diff(runIn(t, "native", args...), runIn(t, "microvm", args...)); diff != "" {
				t.Errorf("-native +microvm:\n%s", diff)
			}
		})
	}
}

// serveInternet serves a name and HTTP.
func serveInternet(t *testing.T) {
	t.Helper()
	internettest.ServeNames(t, map[string][]netip.Addr{"api.example.com": {netip.MustParseAddr("93.184.215.14")}})
	l, err := net.Listen("tcp", "[::]:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.Host) })}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Close(); serving.Wait() })
}

// patient are options of runs in emulated machines.
var patient = runtime.RunOptions{Timeout: 5 * time.Minute}

// The runs of a sandbox are forked from a warm Node, share its tree, which the host can access, call functions of the host, and reach
// the external hosts that permissions allow.
func TestSandbox(t *testing.T) {
	needMachines(t)
	before := harness.TakeInventory()
	t.Cleanup(func() { before.CheckLeaks(t) })
	double := func(_ context.Context, args json.RawMessage) (any, error) {
		var list []int
		err := json.Unmarshal(args, &list)
		return 2 * list[0], err
	}
	network := policy.Scope{Default: policy.Deny, Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"tcp://api.example.com:80"}}}}
	serveInternet(t)
	rt := harness.Create(t, runtime.Options{
		Bindings: map[string]any{"double": runtime.Function{Call: double}}, Permissions: policy.Permissions{Network: network},
		Files: map[string][]byte{"/workspace/given": []byte("given")},
	})
	for _, tc := range []struct{ code, want string }{
		{`require('node:fs').writeFileSync('a', 'kept'); __return(require('node:fs').readFileSync('given', 'utf8'))`, `"given"`},
		{`__return(require('node:fs').readFileSync('a', 'utf8'))`, `"kept"`},
		{`__return(double(21))`, "42"},
		{`fetch('http://api.example.com/').then((res) => res.text()).then(__return)`, `"served api.example.com"`},
		{`fetch('http://other.test/').catch((err) => __return(err.cause.code))`, `"EAI_AGAIN"`},
	} {
		res := harness.Run(t, rt, tc.code, patient)
		if string(res.Value) != tc.want || res.Launcher != runtime.LauncherZygote {
			t.Errorf("%s: %s, launcher %v, %s", tc.code, res.Value, res.Launcher, res.Stderr)
		}
		t.Log(res.Duration, res.Usage.CPU)
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

// If runs use more memory together than their machine has, some end for lack of memory, and the sandbox works on.
func TestMemoryOfMachine(t *testing.T) {
	needMachines(t)
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 512 << 20, Disk: 1 << 20}})
	const fill = `const all = []; for (let i = 0; i < 440; i++) all.push(Buffer.alloc(1 << 20, 1)); console.log('full'); setTimeout(() => {}, 20_000)`
	var runs sync.WaitGroup
	var killed atomic.Int32
	for range 2 {
		runs.Go(func() {
			res, err := rt.Run(t.Context(), fill, patient)
			switch {
			case err != nil || res.Cause != "" && res.Cause != runtime.CauseMemory:
				t.Errorf("%+v, %v", res, err)
			case res.Cause == runtime.CauseMemory:
				killed.Add(1)
			}
		})
	}
	runs.Wait()
	if killed.Load() == 0 {
		t.Error("no run has ended for lack of memory")
	}
	if res := harness.Run(t, rt, `__return(1)`, patient); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
}

// What virtual machines lack is refused before anything is made.
func TestRefused(t *testing.T) {
	for feature, o := range map[runtime.Feature]runtime.Options{
		runtime.FeatureMounts: {Mounts: []runtime.Mount{{Source: "/tmp", Target: "/data"}}},
		runtime.FeatureAudit:  {AuditDenials: true},
		runtime.FeatureOCI:    {OCI: runtime.OCIOptions{Runtime: "runc"}},
	} {
		o.Isolation = runtime.IsolationMicroVM
		_, err := runtime.Create(t.Context(), harness.Options(o))
		u, ok := errors.AsType[*runtime.UnsupportedError](err)
		if !ok || u.Feature != feature || !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("%s: %v", feature, err)
		}
	}
	for _, o := range []runtime.Options{{NodeModules: "/tmp"}, {Snapshot: "a"}} {
		o.Isolation = runtime.IsolationMicroVM
		if _, err := runtime.Create(t.Context(), harness.Options(o)); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// hostVar makes this program a host with one run. Its value is the parent of cgroups.
const hostVar = "GAOL_TEST_MICROVM_HOST"

// beHost makes a run until it is killed.
func beHost(parent string) {
	rt, err := runtime.Create(context.Background(), runtime.Options{Isolation: runtime.IsolationMicroVM, CgroupParent: parent})
	if err == nil {
		_, err = rt.Run(context.Background(), `console.log('runs'); setInterval(() => {}, 1000)`, runtime.RunOptions{Timeout: patient.Timeout, OnStdout: func(text []byte) { _, _ = os.Stdout.Write(text) }})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A host that is killed leaves no QEMU, and the next one removes its files and cgroups.
func TestKilledHost(t *testing.T) {
	needMachines(t)
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
	if n := len(harness.JailProcesses()); n != 1 {
		t.Errorf("%d processes, want QEMU", n)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	harness.WaitFor(t, "QEMU has ended", func() bool { return len(harness.JailProcesses()) == 0 })
	if out, err := exec.CommandContext(t.Context(), harness.Gaol(t), "run", "-e", "1").CombinedOutput(); err != nil { // it sweeps
		t.Errorf("%v: %s", err, out)
	}
	before.CheckLeaks(t)
}
