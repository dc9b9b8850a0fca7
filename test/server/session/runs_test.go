package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/client"
)

// testForgedOutput: output that looks like an error of net/http does not end the session.
func testForgedOutput(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	const forged = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400"
	for _, n := range []int{0, 1, 400, 4080} {
		text := strings.Repeat("x", n) + forged
		res, err := sb.Run(soon(t), fmt.Sprintf("process.stdout.write(%q)", text), runtime.RunOptions{})
		if err != nil || string(res.Stdout) != text {
			t.Fatalf("%d: %v", n, err)
		}
	}
}

// isCode reports whether an error is a refusal with a code.
func isCode(err error, code string) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == code
}

// testLargeOutput: output beyond all windows arrives whole, in callbacks and in the result.
func testLargeOutput(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	const code = `for (let i = 0; i < 80; i++) { await new Promise(r => process.stdout.write('x'.repeat(32768), r)); await new Promise(r => process.stderr.write('y'.repeat(16384), r)); }`
	const stdout, stderr = 80 * 32768, 80 * 16384
	res, err := sb.Run(soon(t), code, runtime.RunOptions{})
	if err != nil || len(res.Stdout) != stdout || len(res.Stderr) != stderr {
		t.Fatalf("%v %d %d", err, len(res.Stdout), len(res.Stderr))
	}
	seen := 0
	res, err = sb.Run(soon(t), code, runtime.RunOptions{OnStdout: func(b []byte) { seen += len(b) }})
	if err != nil || seen != stdout || len(res.Stdout) != stdout || len(res.Stderr) != stderr || res.Truncated.Stdout {
		t.Fatalf("%v %d %d %d", err, seen, len(res.Stdout), len(res.Stderr))
	}
}

// testLargeInput: standard input beyond all windows arrives whole.
func testLargeInput(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	in := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	res, err := sb.Command(soon(t), "wc", []string{"-c"}, runtime.RunOptions{Stdin: bytes.NewReader(in)})
	if err != nil || strings.TrimSpace(string(res.Stdout)) != "1600000" {
		t.Fatalf("%v %s", err, res.Stdout)
	}
}

var errRead = errors.New("this input cannot be read")

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errRead }

func testInputFails(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	if _, err := sb.Command(soon(t), "cat", nil, runtime.RunOptions{Stdin: badReader{}}); !errors.Is(err, errRead) {
		t.Errorf("%v", err)
	}
}

// testCancel: a canceled run returns a result, and is gone from the server.
func testCancel(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	ctx, cancel := context.WithCancelCause(soon(t))
	errWhy := errors.New("the user has left")
	res, err := sb.Run(ctx, `console.log('ready'); setInterval(() => {}, 1000)`, runtime.RunOptions{OnStdout: func([]byte) { cancel(errWhy) }})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) || res == nil || res.Cause != runtime.CauseCanceled || string(res.Stdout) != "ready\n" {
		t.Errorf("%v %+v", err, res)
	}
	if info, err := sb.Info(soon(t)); err != nil || info.Processes != 0 {
		t.Errorf("%v %+v", err, info)
	}
}

func testDenials(t *testing.T, c *client.Client) {
	p, err := policy.Parse([]byte(`{"childProcess":"deny"}`))
	if err != nil {
		t.Fatal(err)
	}
	sb := createIn(t, c, client.CreateOptions{Permissions: p})
	denied := 0
	res, err := sb.Run(soon(t), `import { spawnSync } from 'node:child_process'; console.log(spawnSync('true').error.code)`, runtime.RunOptions{OnEvent: func(e runtime.Event) {
		if d, ok := e.(runtime.DenialEvent); ok && d.Denial.Scope == "childProcess" {
			denied++
		}
	}})
	if err != nil || denied == 0 || len(res.Denials) == 0 {
		t.Errorf("%v, %d events, %+v", err, denied, res)
	}
}

// testBreak: OnEvent can end its run, although that prints without end.
func testBreak(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	ctx, cancel := context.WithCancel(soon(t))
	args := []string{"-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"}
	res, err := sb.Command(ctx, "sh", args, runtime.RunOptions{OnEvent: func(runtime.Event) { cancel() }})
	if !errors.Is(err, context.Canceled) || res == nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("%v %+v", err, res)
	}
}

func testEvaluate(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{Bindings: map[string]any{"shared": 3}})
	var lines []string
	e, err := sb.Evaluate(soon(t), "```js\nconsole.log('a'); console.warn('b'); shared + own\n```", runtime.EvaluateOptions{
		Globals: map[string]any{"own": 4}, OnLog: func(l runtime.Log) { lines = append(lines, string(l.Level)+l.Text) },
	})
	if err != nil || string(e.Value) != "7" || strings.Join(lines, " ") != "loga warnb" || len(e.Logs) != 2 {
		t.Errorf("%v %+v %q", err, e, lines)
	}
	e, err = sb.Evaluate(soon(t), `null.x`, runtime.EvaluateOptions{})
	if err != nil || e.Error == nil || e.Error.Name != "TypeError" || e.Error.Frame == "" {
		t.Errorf("%v %+v", err, e)
	}
	for _, o := range []runtime.EvaluateOptions{{Heap: 1 << 26}, {Module: true}, {Grace: 1}} {
		if _, err = sb.Evaluate(soon(t), `1`, o); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	var logs int
	_, err = sb.Evaluate(soon(t), `console.log(1); console.log(2)`, runtime.EvaluateOptions{OnEvent: func(e runtime.Event) {
		if _, ok := e.(runtime.LogEvent); ok {
			logs++
		}
	}})
	if err != nil || logs != 2 {
		t.Errorf("%v, %d logs", err, logs)
	}
}
