package fleet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// isCode reports whether an error of a session is of a code.
func isCode(err error, code string) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == code
}

// sandboxOf returns a sandbox of a node, through a session with another one.
func sandboxOf(t *testing.T, owner, by *node) *client.Sandbox {
	t.Helper()
	return by.dial(t, ada).Sandbox(strings.TrimPrefix(owner.as(t, ada).create(nil), "/v1/sandboxes/"))
}

// testSession: a session runs programs and transfers files in sandboxes of other nodes, one after another and at the same time.
func testSession(t *testing.T, c *cluster) {
	session := c.nodes[2].dial(t, ada)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, owner := range c.nodes {
		id := strings.TrimPrefix(owner.as(t, ada).create(nil), "/v1/sandboxes/")
		t.Run("sandbox of "+owner.name, func(t *testing.T) {
			t.Parallel()
			sb := session.Sandbox(id)
			res, err := sb.Run(soon(t), `console.log('out'); __return(process.argv[2])`, runtime.RunOptions{Args: []string{"argument"}})
			if err != nil || string(res.Value) != `"argument"` || string(res.Stdout) != "out\n" {
				t.Errorf("%v %+v", err, res)
			}
			if res, err = sb.Exec(soon(t), `process.stdin.pipe(process.stdout)`, runtime.RunOptions{Stdin: bytes.NewReader(content)}); err != nil || !bytes.Equal(res.Stdout, content) {
				t.Errorf("%v, %d bytes", err, len(res.Stdout))
			}
			if err := sb.FS().WriteFile(soon(t), "/workspace/file", content, hostfs.WriteOptions{}); err != nil {
				t.Error(err)
			}
			if got, err := sb.FS().ReadFile(soon(t), "/workspace/file"); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%v, %d bytes", err, len(got))
			}
			if _, err := sb.FS().ReadFile(soon(t), "/workspace/none"); !isCode(err, "not_found") {
				t.Error(err)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
			if _, err := sb.Info(soon(t)); !isCode(err, "not_found") && !isCode(err, "closed") {
				t.Error(err)
			}
		})
	}
}

// testSessionProcesses: a process on another node has its input, its output and signals.
func testSessionProcesses(t *testing.T, c *cluster) {
	sb := sandboxOf(t, c.nodes[0], c.nodes[1])
	p, err := sb.Spawn(soon(t), "cat", nil, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(p.Stdout)
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(p.Stdin, line); err != nil {
			t.Fatal(err)
		}
		harness.Expect(t, out, line)
	}
	if err := p.Stdin.Close(); err != nil {
		t.Error(err)
	}
	if res, err := p.Wait(soon(t)); err != nil || res.ExitCode != 0 {
		t.Errorf("%v %+v", err, res)
	}
	p, err = sb.SpawnCode(soon(t), `process.on('SIGUSR2', () => console.log('usr2')); setInterval(() => {}, 1000); console.log('ready')`, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(p.Stdout)
	harness.Expect(t, out, "ready\n")
	if err := p.Signal(syscall.SIGUSR2); err != nil {
		t.Error(err)
	}
	harness.Expect(t, out, "usr2\n")
	p.Kill()
	if res, err := p.Wait(soon(t)); err != nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("%v %+v", err, res)
	}
	if p, err = sb.SpawnCode(soon(t), `require('net').createServer(s => s.pipe(s)).listen(3000, '127.0.0.1')`, runtime.SpawnOptions{}); err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := sb.WaitForListener(soon(t), 3000); err != nil {
		t.Fatal(err)
	}
	conn, err := sb.Dial(soon(t), 3000)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "echo"); err != nil {
		t.Error(err)
	}
	harness.Expect(t, bufio.NewReader(conn), "echo")
}

// testSessionContexts: a context on another node keeps its declarations.
func testSessionContexts(t *testing.T, c *cluster) {
	sb := sandboxOf(t, c.nodes[1], c.nodes[0])
	cells, err := sb.NewContext(soon(t), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range []struct{ code, want string }{{"let n = 1; n", "1"}, {"n += 1", "2"}, {"n + 1", "3"}} {
		if e, err := cells.Evaluate(soon(t), cell.code, runtime.EvaluateOptions{}); err != nil || string(e.Value) != cell.want {
			t.Errorf("%s: %v %+v", cell.code, err, e)
		}
	}
	if err := cells.Close(); err != nil {
		t.Error(err)
	}
	if _, err := cells.Evaluate(soon(t), "n", runtime.EvaluateOptions{}); !errors.Is(err, runtime.ErrContextEnded) {
		t.Error(err)
	}
}

// testSessionCancel: a run on another node ends when its client cancels it, and when the session ends.
func testSessionCancel(t *testing.T, c *cluster) {
	const endless = `console.log('ready'); setInterval(() => {}, 1000)`
	sb := sandboxOf(t, c.nodes[0], c.nodes[2])
	ctx, cancel := context.WithCancel(soon(t))
	res, err := sb.Run(ctx, endless, runtime.RunOptions{OnStdout: func([]byte) { cancel() }})
	if !errors.Is(err, context.Canceled) || res == nil || res.Cause != runtime.CauseCanceled || string(res.Stdout) != "ready\n" {
		t.Errorf("%v %+v", err, res)
	}
	if info, err := sb.Info(soon(t)); err != nil || info.Processes != 0 {
		t.Errorf("after a cancel: %v %+v", err, info)
	}
	session := c.nodes[1].dial(t, ada)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := session.Sandbox(sb.ID()).Run(soon(t), endless, runtime.RunOptions{OnStdout: func([]byte) { close(ready) }})
		ended <- err
	}()
	<-ready
	_ = session.Close()
	if err := <-ended; !errors.Is(err, client.ErrDisconnected) {
		t.Error(err)
	}
	harness.WaitFor(t, "the run ends with the session", func() bool {
		info, err := sb.Info(soon(t))
		return err == nil && info.Processes == 0
	})
}

// testSessionFunctions: host functions are called by a sandbox that a drained node has placed elsewhere.
func testSessionFunctions(t *testing.T, c *cluster) {
	drained := c.nodes[0]
	c.drain(t, drained, true)
	defer c.drain(t, drained, false)
	session := drained.dial(t, ada)
	for i := range 3 { // of several sandboxes, with the same names
		var calls atomic.Int64
		blocked, ended := make(chan struct{}), make(chan struct{})
		sb, err := session.Create(soon(t), client.CreateOptions{Bindings: map[string]any{
			"version": i,
			"add": runtime.NewFunction2("adds", func(_ context.Context, a, b int) (int, error) {
				calls.Add(1)
				return a + b, nil
			}),
			"fail": runtime.NewFunction0("fails", func(context.Context) (int, error) {
				return 0, &runtime.CallError{Code: "ENOENT", Message: "none"}
			}),
			"block": runtime.NewFunction0("waits for the end", func(ctx context.Context) (int, error) {
				close(blocked)
				<-ctx.Done()
				close(ended)
				return 0, ctx.Err()
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if ownerOf(sb.ID()) == drained.id {
			t.Fatalf("the drained node has the sandbox %s", sb.ID())
		}
		res, err := sb.Run(soon(t), `let code; try { fail() } catch (e) { code = e.code } __return([version, add(1, 2), add(3, await add.async(4, 5)), code])`, runtime.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(`[N,3,12,"ENOENT"]`, "N", string(rune('0'+i)), 1); string(res.Value) != want || calls.Load() != 3 || len(res.Calls) != 4 {
			t.Errorf("%s, want %s, after %d calls; %s", res.Value, want, calls.Load(), res.Stderr)
		}
		ctx, cancel := context.WithCancel(soon(t))
		go func() {
			<-blocked
			cancel()
		}()
		if _, err := sb.Run(ctx, `await block.async()`, runtime.RunOptions{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		select {
		case <-ended:
		case <-soon(t).Done():
			t.Fatal("the function did not end with its run")
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
}
