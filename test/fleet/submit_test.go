package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/runtime/resultjson"
	"gaol/test/harness"
)

// startAlone starts a server without a fleet, which serves TCP.
func startAlone(t *testing.T, gaol string) *node {
	t.Helper()
	n := newCluster(t).prepare(t, "alone")
	if gaol != "" {
		n.gaol = gaol
	}
	n.run(t, n.command())
	n.waitAddress(t)
	return n
}

// endless is a program that does not end.
const endless = `console.log('begun'); setInterval(() => {}, 1000)`

// TestSubmit runs batch runs of the Go client and of gaol submit on one server.
func TestSubmit(t *testing.T) {
	t.Parallel()
	n := startAlone(t, "")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *node)
	}{
		{"options", testSubmitOptions},
		{"command", testSubmitCommand},
		{"key", testSubmitKey},
		{"wait and cancel", testSubmitCancel},
		{"unknown key", testUnknownKey},
		{"gaol submit", testGaolSubmit},
		{"gaol submit --wait", testGaolSubmitWait},
		{"gaol submit: signal", testGaolSubmitSignal},
		{"gaol result", testGaolResult},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, n) })
	}
	n.stop(t)
}

// submitted submits code, and waits for the result.
func submitted(t *testing.T, c *client.Client, code string, o client.SubmitOptions) *client.BatchRun {
	t.Helper()
	run, err := c.Submit(soon(t), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return awaited(t, c, run.Key)
}

func awaited(t *testing.T, c *client.Client, key string) *client.BatchRun {
	t.Helper()
	run, err := c.WaitBatchRun(soon(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if run.Key != key || run.State != resultjson.BatchDone || run.Done == nil || run.Error != nil || run.Result == nil {
		t.Fatalf("%+v, error %+v", run, run.Error)
	}
	return run
}

// testSubmitOptions: all options of a run and of a sandbox reach the program.
func testSubmitOptions(t *testing.T, n *node) {
	run := submitted(t, n.dial(t, ada), `
		const fs = require('node:fs'), os = require('node:os');
		const denied = (path) => { try { fs.writeFileSync(path, 'x'); return false } catch (e) { return e.code } };
		console.log(fs.readFileSync(0, 'utf8'));
		console.error('error');
		__return({ args: process.argv.slice(2), env: process.env.A, cwd: process.cwd(), file: fs.readFileSync('/data/f', 'utf8'),
			host: os.hostname(), name: __filename.split('/').pop(), root: denied('/tmp/x'), data: denied('/data/g') });
		process.exitCode = 3`, client.SubmitOptions{
		Stdin: "input \u00e4",
		Run: runtime.RunOptions{
			Name: "p.js", Format: runtime.FormatCommonJS, Args: []string{"a", "b"}, Env: map[string]string{"A": "1"}, Cwd: "/data", Timeout: -1,
			Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/data/**"}}}}},
		},
		Sandbox: client.CreateOptions{Files: map[string][]byte{"/data/f": []byte("content")}, Hostname: "box", Limits: runtime.Limits{Memory: 192 << 20}},
	})
	var value struct {
		Args                       []string
		Env, Cwd, File, Host, Name string
		Root, Data                 any
	}
	res := run.Result
	if err := json.Unmarshal(res.Value, &value); err != nil {
		t.Fatalf("%v: %+v %s", err, res, res.Stderr)
	}
	got := fmt.Sprint(value)
	if want := "{[a b] 1 /data content box p.js false EROFS}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if string(res.Stdout) != "input \u00e4\n" || string(res.Stderr) != "error\n" || res.ExitCode != 3 {
		t.Errorf("%q, %q, exit code %d", res.Stdout, res.Stderr, res.ExitCode)
	}
	read := submitted(t, n.dial(t, ada), `require('node:fs').writeFileSync('/workspace/x', '')`, client.SubmitOptions{Sandbox: client.CreateOptions{ReadOnlyRoot: true}})
	if read.Result.Error == nil || !strings.Contains(read.Result.Error.Message, "EROFS") {
		t.Errorf("a read-only sandbox: %+v", read.Result)
	}
}

func testSubmitCommand(t *testing.T, n *node) {
	c := n.dial(t, ada)
	run, err := c.SubmitCommand(soon(t), "sh", []string{"-c", `cat; echo "$0"; exit 4`, "arg"}, client.SubmitOptions{Stdin: "in,"})
	if err != nil {
		t.Fatal(err)
	}
	if res := awaited(t, c, run.Key).Result; string(res.Stdout) != "in,arg\n" || res.ExitCode != 4 {
		t.Errorf("%+v", res)
	}
	if _, err := c.SubmitCommand(soon(t), "", nil, client.SubmitOptions{}); err == nil {
		t.Error("a command without a name was accepted")
	}
}

// testSubmitKey: a request is submitted once, and its key names no other one.
func testSubmitKey(t *testing.T, n *node) {
	c, o := n.dial(t, ada), client.SubmitOptions{Key: "once:1", Run: runtime.RunOptions{Args: []string{"x"}}}
	first, err := c.Submit(soon(t), `console.log(process.hrtime.bigint())`, o)
	if err != nil || first.Key != o.Key {
		t.Fatalf("%+v, %v", first, err)
	}
	done := awaited(t, c, o.Key)
	again, err := c.Submit(soon(t), `console.log(process.hrtime.bigint())`, o)
	if err != nil || again.State != resultjson.BatchDone || !again.Submitted.Equal(first.Submitted) || !bytes.Equal(again.Result.Stdout, done.Result.Stdout) {
		t.Errorf("%+v, %v, want %+v", again, err, done)
	}
	other := o
	other.Run.Args = []string{"y"}
	_, err = c.Submit(soon(t), `console.log(process.hrtime.bigint())`, other)
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "gaol: submit: server: idempotencyKey: it was used for another request") {
		t.Errorf("another request with the key: %v", err)
	}
	foreign := submitted(t, n.dial(t, bob), `console.log('bob')`, o)
	if string(foreign.Result.Stdout) != "bob\n" {
		t.Errorf("the key of another tenant: %+v", foreign)
	}
	if a, b := submitted(t, c, `1`, client.SubmitOptions{}), submitted(t, c, `1`, client.SubmitOptions{}); a.Key == b.Key {
		t.Errorf("two batch runs have the key %s", a.Key)
	}
}

// waitRunning waits until a batch run has begun.
func waitRunning(t *testing.T, c *client.Client, key string) {
	t.Helper()
	harness.WaitFor(t, "batch run "+key+" begins", func() bool {
		run, err := c.BatchRun(soon(t), key)
		if err != nil {
			t.Fatal(err)
		}
		return run.State == resultjson.BatchRunning
	})
}

// testSubmitCancel: the end of a wait does not end the batch run, and CancelBatchRun does.
func testSubmitCancel(t *testing.T, n *node) {
	c := n.dial(t, ada)
	if _, err := c.Submit(soon(t), endless, client.SubmitOptions{Key: "endless", Run: runtime.RunOptions{Timeout: -1}}); err != nil {
		t.Fatal(err)
	}
	waitRunning(t, c, "endless")
	ctx, cancel := context.WithCancel(soon(t))
	waited := make(chan error)
	go func() {
		_, err := c.WaitBatchRun(ctx, "endless")
		waited <- err
	}()
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait: %v", err)
	}
	if run, err := c.BatchRun(soon(t), "endless"); err != nil || run.State != resultjson.BatchRunning || run.Attempts != 1 {
		t.Errorf("after a canceled wait: %+v, %v", run, err)
	}
	done, ctx := make(chan *client.BatchRun), soon(t)
	go func() {
		run, _ := c.WaitBatchRun(ctx, "endless")
		done <- run
	}()
	run, err := c.CancelBatchRun(soon(t), "endless")
	if err != nil || run.State != resultjson.BatchDone || run.Result == nil || run.Result.Cause != runtime.CauseCanceled {
		t.Errorf("%+v, %v", run, err)
	}
	if run := <-done; run == nil || run.Result == nil || run.Result.Cause != runtime.CauseCanceled {
		t.Errorf("the wait for it: %+v", run)
	}
	ended := submitted(t, c, `1`, client.SubmitOptions{})
	if run, err := c.CancelBatchRun(soon(t), ended.Key); err != nil || run.Result == nil || run.Result.Cause != "" {
		t.Errorf("cancel after the end: %+v, %v", run, err)
	}
}

func testUnknownKey(t *testing.T, n *node) {
	c := n.dial(t, bob)
	for name, get := range map[string]func(context.Context, string) (*client.BatchRun, error){"get": c.BatchRun, "wait": c.WaitBatchRun, "cancel": c.CancelBatchRun} {
		if run, err := get(soon(t), "endless"); run != nil || !errors.Is(err, fs.ErrNotExist) { // it is ada's
			t.Errorf("%s: %+v, %v", name, run, err)
		}
	}
}

// shell is the outcome of a command of gaol.
type shell struct {
	code           int
	stdout, stderr string
}

// tool returns a command of gaol for a user of the node.
func (n *node) tool(args ...string) *exec.Cmd {
	dash := slices.Index(append(args, "--"), "--")
	cmd := n.gaolCommand(slices.Insert(args, dash, "--server", "http://"+n.address))
	cmd.Env = append(os.Environ(), "GAOL_TOKEN="+n.c.secrets[ada])
	return cmd
}

// sh runs a command of gaol.
func (n *node) sh(t *testing.T, stdin string, args ...string) shell {
	t.Helper()
	cmd := n.tool(args...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return shell{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// expect runs a command of gaol, whose standard error must contain text.
func (n *node) expect(t *testing.T, want shell, stdin string, args ...string) {
	t.Helper()
	got := n.sh(t, stdin, args...)
	if got.code != want.code || got.stdout != want.stdout || !strings.Contains(got.stderr, want.stderr) || (want.stderr == "") != (got.stderr == "") {
		t.Errorf("gaol %q: %+v, want %+v", args, got, want)
	}
}

func testGaolSubmit(t *testing.T, n *node) {
	file := filepath.Join(t.TempDir(), "prog.ts")
	if err := os.WriteFile(file, []byte("const s: string = process.argv[2] + process.env.A; console.log(s)"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n.expect(t, shell{0, "file\n", ""}, "", "submit", "--key", "file", "--env", "A=1", file, "--", "x")
	}
	n.expect(t, shell{125, "", "it was used for another request"}, "", "submit", "--key", "file", file, "--", "y")
	n.expect(t, shell{0, "x1\n", ""}, "", "result", "--wait", "file")
	key := n.sh(t, "console.log('piped')", "submit")
	if key.code != 0 || len(strings.Fields(key.stdout)) != 1 || key.stderr != "" {
		t.Fatalf("%+v", key)
	}
	n.expect(t, shell{0, "piped\n", ""}, "", "result", "--wait", strings.TrimSpace(key.stdout))
	var run client.BatchRun
	if err := json.Unmarshal([]byte(n.sh(t, "", "submit", "--json", "--key", "json", "-e", "1").stdout), &run); err != nil || run.Key != "json" || run.Submitted.IsZero() {
		t.Errorf("%+v, %v", run, err)
	}
	n.expect(t, shell{125, "", "--mount is not available on a server"}, "", "submit", "--mount", "/tmp:/mnt", "-e", "1")
	n.expect(t, shell{125, "", "nothing to run"}, "", "submit", "--stdin")
	n.expect(t, shell{125, "", "Stdin: not valid UTF-8"}, "\xff", "submit", "--stdin", "-e", "1")
	n.expect(t, shell{125, "", "memory"}, "", "submit", "--wait", "--memory", "900g", "-e", "1")
}

// testGaolSubmitWait: the result of gaol submit --wait is that of gaol run.
func testGaolSubmitWait(t *testing.T, n *node) {
	for _, test := range []struct {
		want  shell
		stdin string
		args  []string
	}{
		{shell{3, "out\n", "err\n"}, "", []string{"-e", "console.log('out'); console.error('err'); process.exitCode = 3"}},
		{shell{0, "from stdin", ""}, "from stdin", []string{"--stdin", "--command", "--", "cat"}},
		{shell{124, "", "gaol: the program was stopped: it ran longer than 300ms; allow more with --timeout\n"}, "", []string{"--timeout", "300ms", "-e", "setInterval(() => {}, 1000)"}},
		{shell{137, "", "gaol: the program was killed for memory: it needed more than 64m; allow more with --memory\n"}, "", []string{"--memory", "64m", "-e", "for (const a = [];;) a.push(Buffer.alloc(1 << 20, 1))"}},
		{shell{1, "", "gaol: denied, reported by the program: fs read /etc/x"}, "", []string{"--preset", "strict", "-e", "require('fs').writeFileSync('/etc/x', '')"}},
		{shell{125, "", "gaol: the server could not run it: "}, "", []string{"--command", "--", "nosuch"}},
	} {
		n.expect(t, test.want, test.stdin, append([]string{"submit", "--wait"}, test.args...)...)
	}
	got := n.sh(t, "", "submit", "--wait", "--json", "-e", "console.log('x'.repeat(300_000)); __return({a: 1}); process.exitCode = 5")
	var run client.BatchRun
	if err := json.Unmarshal([]byte(got.stdout), &run); err != nil || got.code != 5 || got.stderr != "" || string(run.Result.Value) != `{"a":1}` || !run.Result.Truncated.Stdout {
		t.Errorf("--json: %d, %s, %+v, %v", got.code, got.stderr, run, err)
	}
	cut := n.sh(t, "", "submit", "--wait", "-e", "console.log('x'.repeat(300_000))")
	if cut.code != 0 || len(cut.stdout) != 256<<10 || cut.stderr != "gaol: the output was cut: a batch run keeps at most 256k of each stream\n" {
		t.Errorf("long output: %d, %d bytes, %s", cut.code, len(cut.stdout), cut.stderr)
	}
}

// testGaolSubmitSignal: a signal ends the wait of gaol submit, and not the batch run.
func testGaolSubmitSignal(t *testing.T, n *node) {
	c := n.dial(t, ada)
	cmd := n.tool("submit", "--wait", "--key", "signal", "--timeout", "0", "-e", endless)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the batch run exists", func() bool {
		_, err := c.BatchRun(soon(t), "signal")
		return err == nil
	})
	waitRunning(t, c, "signal")
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // for the exit status
	if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.Len() > 0 {
		t.Errorf("exit status %d, %s", code, &stderr)
	}
	if run, err := c.BatchRun(soon(t), "signal"); err != nil || run.State != resultjson.BatchRunning {
		t.Errorf("%+v, %v", run, err)
	}
}

// testGaolResult continues with the batch run of testGaolSubmitSignal.
func testGaolResult(t *testing.T, n *node) {
	n.expect(t, shell{75, "", "gaol: the batch run is running: --wait waits until it is done\n"}, "", "result", "signal")
	got := n.sh(t, "", "result", "--json", "signal")
	if got.code != 75 || !strings.Contains(got.stdout, `"state":"running"`) || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	n.expect(t, shell{0, "", ""}, "", "result", "--cancel", "signal")
	n.expect(t, shell{0, "", ""}, "", "result", "--json", "--cancel", "signal")
	n.expect(t, shell{125, "", "gaol: the batch run was canceled\n"}, "", "result", "signal")
	n.expect(t, shell{125, "", "there is no such batch run"}, "", "result", "--cancel", "nosuch")
	got = n.sh(t, "", "result", "--json", "signal")
	if got.code != 125 || !strings.Contains(got.stdout, `"cause":"canceled"`) || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	n.expect(t, shell{125, "", "there is no such batch run"}, "", "result", "nosuch")
	n.expect(t, shell{125, "", "accepts 1 arg(s)"}, "", "result")
}

// Without nats-server, the error of a batch run contains how to install it, and other runs work.
func TestSubmitWithoutEngine(t *testing.T) {
	t.Parallel()
	built, dir := filepath.Dir(harness.Gaol(t)), t.TempDir()
	gaol := filepath.Join(dir, "gaol")
	for _, program := range harness.Glob(built+"/gaol", built+"/gaol-server") {
		if err := os.Link(program, filepath.Join(dir, filepath.Base(program))); err != nil {
			t.Fatal(err)
		}
	}
	n := startAlone(t, gaol)
	c := n.dial(t, ada)
	_, err := c.Submit(soon(t), `1`, client.SubmitOptions{})
	const cure = `this server has no engine for batch runs: find nats-server: file does not exist: put it beside gaol: build it with "make build" or "go install`
	if !errors.Is(err, client.ErrEngineUnavailable) || !strings.Contains(err.Error(), cure) {
		t.Errorf("%v", err)
	}
	n.expect(t, shell{125, "", cure}, "", "submit", "-e", "1")
	n.expect(t, shell{125, "", "there is no such batch run"}, "", "result", "x")
	n.expect(t, shell{0, "1\n", ""}, "", "run", "-e", "console.log(1)")
	n.stop(t)
}
