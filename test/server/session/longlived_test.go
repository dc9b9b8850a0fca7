package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
)

func spawn(t *testing.T, sb *client.Sandbox, o runtime.SpawnOptions, name string, args ...string) *client.Process {
	t.Helper()
	p, err := sb.Spawn(soon(t), name, args, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testProcess(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	p := spawn(t, sb, runtime.SpawnOptions{}, "cat")
	out := bufio.NewReader(p.Stdout)
	for _, line := range []string{"a\n", "\xff\x00\n"} {
		if _, err := io.WriteString(p.Stdin, line); err != nil {
			t.Fatal(err)
		}
		if got, err := out.ReadString('\n'); err != nil || got != line {
			t.Errorf("%q %v", got, err)
		}
	}
	if p.PID() == 0 {
		t.Error("no pid")
	}
	if err := p.Stdin.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	res, err := p.Wait(soon(t))
	if err != nil || res.ExitCode != 0 {
		t.Errorf("%v %+v", err, res)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
	if _, err := p.Stdin.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

func testProcessSignals(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	p, err := sb.SpawnCode(soon(t), `
		process.on('SIGUSR2', () => console.log('usr2'));
		setInterval(() => {}, 1000); console.log('ready');`, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(p.Stdout)
	harness.Expect(t, out, "ready\n")
	if err := p.Signal(syscall.SIGUSR2); err != nil {
		t.Error(err)
	}
	harness.Expect(t, out, "usr2\n")
	if err := p.Resize(1, 1); !isCode(err, "conflict") {
		t.Errorf("resize without a terminal: %v", err)
	}
	p.Kill()
	if res, err := p.Wait(soon(t)); err != nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("%v %+v", err, res)
	}
	p = spawn(t, sb, runtime.SpawnOptions{}, "sleep", "100")
	if err := p.SignalGroup(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if res, err := p.Wait(soon(t)); err != nil || res.Signal != "SIGTERM" || res.Cause != runtime.CauseSignal {
		t.Errorf("%v %+v", err, res)
	}
}

func testTerminal(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	p := spawn(t, sb, runtime.SpawnOptions{Terminal: &runtime.Terminal{Rows: 10, Cols: 20}}, "sh")
	out := bufio.NewReader(p.Stdout)
	typeText := func(text string) {
		if _, err := io.WriteString(p.Stdin, text); err != nil {
			t.Fatal(err)
		}
	}
	typeText("stty size\n")
	harness.Expect(t, out, "10 20")
	if err := p.Resize(30, 40); err != nil {
		t.Error(err)
	}
	typeText("stty size\n")
	harness.Expect(t, out, "30 40")
	typeText("exit 5\n")
	if res, err := p.Wait(soon(t)); err != nil || res.ExitCode != 5 {
		t.Errorf("%v %+v", err, res)
	}
}

// testUnreadOutput: a process whose output the client does not read blocks neither other requests nor memory.
func testUnreadOutput(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	p := spawn(t, sb, runtime.SpawnOptions{}, "sh", "-c", "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
	for i := range 3 {
		res, err := sb.Run(soon(t), fmt.Sprintf(`console.log('z'.repeat(400000)); __return(%d)`, i), runtime.RunOptions{})
		if err != nil || string(res.Value) != fmt.Sprint(i) || len(res.Stdout) != 400_001 {
			t.Errorf("%v %s", err, res.Value)
		}
	}
	if _, err := io.CopyN(io.Discard, p.Stdout, 4<<20); err != nil { // more than all buffers
		t.Error(err)
	}
	p.Kill()
	if _, err := p.Wait(soon(t)); err != nil {
		t.Error(err)
	}
}

func testSpawnFails(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	if _, err := sb.Spawn(soon(t), "nosuch", nil, runtime.SpawnOptions{}); !isCode(err, "no_program") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(soon(t))
	cancel()
	if _, err := sb.Spawn(ctx, "true", nil, runtime.SpawnOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func testContext(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	k, err := sb.NewContext(soon(t), runtime.ContextOptions{Globals: map[string]any{"n": 1}, Env: map[string]string{"A": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{`const x = n + 1; x`: "2"} {
		if e, err := k.Evaluate(soon(t), code, runtime.EvaluateOptions{}); err != nil || string(e.Value) != want {
			t.Errorf("%v %+v", err, e)
		}
	}
	var lines []string
	e, err := k.Evaluate(soon(t), `console.log(process.env.A); x + 1`, runtime.EvaluateOptions{OnLog: func(l runtime.Log) { lines = append(lines, l.Text) }})
	if err != nil || string(e.Value) != "3" || strings.Join(lines, "") != "b" {
		t.Errorf("%v %+v %q", err, e, lines)
	}
	if prefix, names, err := k.Complete(soon(t), "process.en"); err != nil || prefix != "en" || len(names) != 1 || names[0] != "env" {
		t.Errorf("%q %q %v", prefix, names, err)
	}
	ctx, cancel := context.WithCancel(soon(t))
	if e, err = k.Evaluate(ctx, `console.log(1); await new Promise(() => {})`, runtime.EvaluateOptions{OnLog: func(runtime.Log) { cancel() }}); !errors.Is(err, context.Canceled) || e == nil {
		t.Errorf("%v %+v", err, e)
	}
	if e, err = k.Evaluate(soon(t), `x`, runtime.EvaluateOptions{}); err != nil || string(e.Value) != "2" {
		t.Errorf("after a canceled cell: %v %+v", err, e)
	}
	if err := k.Close(); err != nil || !errors.Is(k.Err(), runtime.ErrContextEnded) {
		t.Errorf("%v %v", err, k.Err())
	}
	if _, err = k.Evaluate(soon(t), `x`, runtime.EvaluateOptions{}); !errors.Is(err, runtime.ErrContextEnded) {
		t.Errorf("%v", err)
	}
}

func testContextExits(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	k, err := sb.NewContext(soon(t), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := k.Evaluate(soon(t), `process.exit(7)`, runtime.EvaluateOptions{}); err != nil || e.Error == nil {
		t.Errorf("%v %+v", err, e)
	}
	<-k.Done()
	if exit, ok := errors.AsType[*runtime.ExitError](k.Err()); !ok || exit.Code != 7 {
		t.Errorf("%v", k.Err())
	}
}
