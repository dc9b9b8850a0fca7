package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

const endless = `import { writeSync } from 'node:fs'; for (;;) writeSync(1, 'more and ')`

// Breaking out of the range over events cancels the run, and so does a panic in the loop.
// The remaining result is available afterwards.
func TestStreamBroken(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for name, receive := range map[string]func(*runtime.Stream){
		"break": func(s *runtime.Stream) {
			for range s.Events() {
				break
			}
		},
		"panic": func(s *runtime.Stream) {
			defer func() { _ = recover() }()
			for range s.Events() {
				panic("the receiver's")
			}
		},
		"the end of the goroutine": func(s *runtime.Stream) {
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				for range s.Events() {
					goruntime.Goexit()
				}
			}()
			<-gone
		},
	} {
		s := rt.FollowRun(t.Context(), endless, runtime.RunOptions{})
		receive(s)
		if n := len(rt.Processes()); n > 0 {
			t.Errorf("%s: it still runs", name)
		}
		h := receiveAll(t, s)
		if res := h.result(t); res.Cause != runtime.CauseCanceled || len(h.out) > 2<<20 {
			t.Errorf("%s: %d bytes, %+v", name, len(h.out), res)
		}
	}
}

// untilReady waits until a program has created the file ready.
func untilReady(t testing.TB, rt *runtime.NodeRuntime) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := rt.FS().Stat("/workspace/ready"); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the program is not ready")
		}
	}
}

// A run whose events are not consumed, or only the first, ends like any other. Neither it
// nor Close waits for the consumer. The events until then are available afterwards.
func TestStreamStalled(t *testing.T) {
	const code = `
		import { spawnSync } from 'node:child_process'; import { openSync, writeSync } from 'node:fs';
		spawnSync('true');
		for (let i = 0; i < 300; i++) f.async(i);
		await new Promise(done => setTimeout(done, 50));
		writeSync(2, 'all is written'); openSync('/workspace/ready', 'w');
		for (;;) writeSync(1, 'more and ')`
	o := harness.Options(runtime.Options{
		Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}},
		Bindings:    map[string]any{"f": func(context.Context, json.RawMessage) (any, error) { return nil, nil }},
	})
	none := func(*runtime.Stream) {}
	one := func(s *runtime.Stream) {
		for range s.Events() {
			_, _ = s.Result()
			break
		}
	}
	for name, receive := range harness.SomeByName(map[string]func(*runtime.Stream){"nobody": none, "somebody": one}) {
		for _, tc := range []struct {
			cause runtime.Cause
			err   error
			o     runtime.RunOptions
			end   func(*runtime.NodeRuntime, context.CancelFunc)
		}{
			{runtime.CauseTimeout, nil, runtime.RunOptions{Timeout: 2 * time.Second}, func(*runtime.NodeRuntime, context.CancelFunc) {}},
			{runtime.CauseCanceled, context.Canceled, runtime.RunOptions{}, func(_ *runtime.NodeRuntime, cancel context.CancelFunc) { cancel() }},
			{runtime.CauseCanceled, nil, runtime.RunOptions{}, func(rt *runtime.NodeRuntime, _ context.CancelFunc) { rt.Kill(rt.Processes()[0].PID) }},
			{runtime.CauseCanceled, runtime.ErrClosed, runtime.RunOptions{}, func(rt *runtime.NodeRuntime, _ context.CancelFunc) { rt.Close() }},
		} {
			rt := harness.CreateExact(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := rt.FollowRun(ctx, code, tc.o)
			received := make(chan struct{})
			go func() {
				defer close(received)
				receive(s)
			}()
			untilReady(t, rt)
			time.Sleep(50 * time.Millisecond) // until its writes block
			began := time.Now()
			tc.end(rt, cancel)
			res, err := s.Result()
			if took := time.Since(began); !errors.Is(err, tc.err) || res.Cause != tc.cause || took > 10*time.Second {
				t.Errorf("%s: after %v: %v, %q, want %q", name, took, err, res.Cause, tc.cause)
			}
			<-received
			h := receiveAll(t, s)
			if !strings.HasPrefix(string(h.out), "more and more") || string(h.errs) != "all is written" || len(h.calls) != len(res.Calls) || len(h.calls) < 60 {
				t.Errorf("%s, %s: %d bytes, %q, %d calls, of which %d are listed", name, tc.cause, len(h.out), h.errs, len(h.calls), len(res.Calls))
			}
			if name == "nobody" && len(h.denials) != 1 { // otherwise the consumer has read it
				t.Errorf("%+v", h.denials)
			}
		}
	}
}

func TestStreamNeverBegins(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	closed := harness.CreateExact(t, harness.Options(runtime.Options{}))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("the input is broken")
	for name, tc := range map[string]struct {
		s    *runtime.Stream
		want error
	}{
		"closed":      {closed.FollowRun(t.Context(), ``, runtime.RunOptions{}), runtime.ErrClosed},
		"no program":  {rt.FollowCommand(t.Context(), "nosuch", nil, runtime.RunOptions{}), fs.ErrNotExist},
		"bad options": {rt.FollowExec(t.Context(), ``, runtime.RunOptions{Cwd: "/nosuch"}), fs.ErrNotExist},
		"bad input":   {rt.FollowRun(t.Context(), `for await (const b of process.stdin);`, runtime.RunOptions{Stdin: iotest.ErrReader(broken)}), broken},
	} {
		if h := receiveAll(t, tc.s); !errors.Is(h.exits[0].Err, tc.want) || h.exits[0].Result != nil {
			t.Errorf("%s: %+v", name, h.exits[0])
		}
	}
	h := receiveAll(t, rt.FollowRun(gone, endless, runtime.RunOptions{}))
	if res := h.result(t); res.Cause != runtime.CauseCanceled || len(h.kinds) != 1 {
		t.Errorf("a context that has ended: %v %+v", h.kinds, res)
	}
	h = receiveAll(t, rt.FollowRun(t.Context(), ``, runtime.RunOptions{OnStdout: func([]byte) {}}))
	if err := h.exits[0].Err; err == nil || !strings.Contains(err.Error(), "gaol: run: options OnStdout") {
		t.Errorf("with OnStdout: %v", err)
	}
}

// Limits apply to streamed output.
func TestStreamLimits(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: 1 << 20, CPUTime: 20 * time.Second}})
	h := receiveAll(t, rt.FollowRun(t.Context(), endless, runtime.RunOptions{OnOutputLimit: runtime.KillOnOutput}))
	if res := h.result(t); res.Cause != runtime.CauseOutput || len(h.out) < 1<<20 {
		t.Errorf("%d bytes, %+v", len(h.out), res)
	}
	h = receiveAll(t, rt.FollowRun(t.Context(), `process.stdout.write('x'.repeat(3 << 20))`, runtime.RunOptions{}))
	if res := h.result(t); res.Cause != "" || len(h.out) != 3<<20 {
		t.Errorf("%d bytes, %+v", len(h.out), res)
	}
	h = receiveAll(t, rt.FollowRun(t.Context(), `const all = []; for (;;) all.push(Array(1e5).fill(all.length))`, runtime.RunOptions{}))
	if res := h.result(t); res.Cause != runtime.CauseMemory {
		t.Errorf("%+v: %s", res, h.errs)
	}
}

// Streaming a gigabyte, or here a part of it, does not increase the host's memory.
func TestStreamMemory(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: 1 << 20}})
	const total = 384 << 20
	code := fmt.Sprintf(`import { writeSync } from 'node:fs'; const piece = Buffer.alloc(65536, 'x'); for (let n = 0; n < %d; n += piece.length) writeSync(1, piece)`, total)
	for name, stream := range map[string]func(take func([]byte)) (*runtime.Result, error){
		"events": func(take func([]byte)) (*runtime.Result, error) {
			s := rt.FollowRun(t.Context(), code, runtime.RunOptions{})
			for e := range s.Events() {
				if out, ok := e.(runtime.StdoutEvent); ok {
					take(out.Data)
				}
			}
			return s.Result()
		},
		"a callback": func(take func([]byte)) (*runtime.Result, error) {
			return rt.Run(t.Context(), code, runtime.RunOptions{OnStdout: take})
		},
	} {
		var heap, resident []int64
		n := 0
		res, err := stream(func(b []byte) {
			if n += len(b); n > len(heap)*total/8 {
				heap, resident = append(heap, harness.LiveHeap()), append(resident, residentMemory(t))
			}
		})
		if err != nil || res.ExitCode != 0 || n != total {
			t.Fatalf("%s: %d bytes, %v %+v", name, n, err, res)
		}
		last := len(heap) - 1
		if last < 7 || heap[last]-heap[1] > 4<<20 || resident[last]-resident[1] > 24<<20 {
			t.Errorf("%s: heap %v, resident %v", name, heap, resident)
		}
	}
}

// residentMemory is this process's, in bytes.
func residentMemory(t testing.TB) (bytes int64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// A program that exits right after a long output loses nothing, however slowly the host reads.
func TestOutputBeforeExit(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: 8 << 20}})
	const most = 5_000_000
	for name, code := range map[string]string{
		"exit":              `console.log("x".repeat(%d)); process.exit(0)`,
		"standard error":    `console.error("x".repeat(%d)); process.exit(0)`,
		"several writes":    `for (let i = 0; i < 5; i++) process.stdout.write("x".repeat(%d / 5)); process.exit(0)`,
		"an uncaught error": `console.log("x".repeat(%d)); process.on('uncaughtException', () => process.exit(0)); null.x`,
	} {
		t.Run(name, func(t *testing.T) {
			res := harness.Run(t, rt, strings.ReplaceAll(code, "%d", strconv.Itoa(most)), runtime.RunOptions{})
			if n := len(res.Stdout) + len(res.Stderr); n < most || res.ExitCode != 0 {
				t.Errorf("%d of %d bytes, exit code %d", n, most, res.ExitCode)
			}
		})
	}
}
