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

// A panic in OnEvent ends the run, and so does the end of its goroutine.
func TestStreamBroken(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for name, onEvent := range map[string]func(runtime.Event){
		"panic":                    func(runtime.Event) { panic("the receiver's") },
		"the end of the goroutine": func(runtime.Event) { goruntime.Goexit() },
	} {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer func() { _ = recover() }()
			_, _ = rt.Run(t.Context(), endless, runtime.RunOptions{OnEvent: onEvent})
			t.Errorf("%s: Run has returned", name)
		}()
		<-gone
		if n := len(rt.Processes()); n > 0 {
			t.Errorf("%s: it still runs", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	h := receiveAll(ctx, func(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
		take := o.OnEvent
		o.OnEvent = func(e runtime.Event) { cancel(); take(e) }
		return rt.Run(ctx, code, o)
	}, endless, runtime.RunOptions{})
	if res := h.result(t); res.Cause != runtime.CauseCanceled || len(h.out) > 2<<20 {
		t.Errorf("%d bytes, %+v", len(h.out), res)
	}
}

// untilReady waits until a program has created the file ready.
func untilReady(t testing.TB, rt *runtime.NodeRuntime) {
	t.Helper()
	harness.WaitFor(t, "the program is ready", func() bool { return isReady(rt) })
}

func isReady(rt *runtime.NodeRuntime) bool {
	_, err := rt.FS().Stat("/workspace/ready")
	return err == nil
}

// A run whose OnEvent does not return, or only for the first event, ends like any other. Neither it
// nor Close waits for the function, which gets the events until then afterwards.
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
	for _, first := range []int{0, 1} { // events before it blocks
		for _, tc := range []struct {
			cause runtime.Cause
			err   error
			o     runtime.RunOptions
			end   func(*runtime.NodeRuntime, context.CancelFunc)
		}{
			{runtime.CauseTimeout, nil, runtime.RunOptions{}, func(*runtime.NodeRuntime, context.CancelFunc) {}},
			{runtime.CauseCanceled, context.Canceled, runtime.RunOptions{}, func(_ *runtime.NodeRuntime, cancel context.CancelFunc) { cancel() }},
			{runtime.CauseCanceled, nil, runtime.RunOptions{}, func(rt *runtime.NodeRuntime, _ context.CancelFunc) { rt.Kill(rt.Processes()[0].PID) }},
			{runtime.CauseCanceled, runtime.ErrClosed, runtime.RunOptions{}, func(rt *runtime.NodeRuntime, _ context.CancelFunc) { rt.Close() }},
		} {
			least := time.Minute // for one try
			if tc.cause == runtime.CauseTimeout {
				least = 2 * time.Second
			}
			harness.InTime(least, func(limit time.Duration) bool {
				if tc.cause == runtime.CauseTimeout {
					tc.o.Timeout = limit
				}
				rt := harness.CreateExact(t, o)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h, unblock, ended := &received{}, make(chan struct{}), make(chan struct{})
				n := 0
				tc.o.OnEvent = func(e runtime.Event) {
					if n++; n > first {
						<-unblock
					}
					h.take(e)
				}
				var res *runtime.Result
				var err error
				begun := time.Now()
				go func() {
					defer close(ended)
					res, err = rt.Run(ctx, code, tc.o)
				}()
				harness.WaitFor(t, "the program is ready, or out of time", func() bool {
					return isReady(rt) || time.Since(begun) > limit && len(rt.Processes()) == 0
				})
				time.Sleep(50 * time.Millisecond) // until its writes block
				began := time.Now()
				tc.end(rt, cancel)
				harness.WaitFor(t, "the run has ended", func() bool { return len(rt.Processes()) == 0 })
				took := time.Since(began)
				close(unblock)
				<-ended
				if string(h.errs) == "" && limit < time.Minute {
					return false
				}
				if !errors.Is(err, tc.err) || res.Cause != tc.cause || took-tc.o.Timeout > 15*time.Second {
					t.Errorf("%d: after %v: %v, %q, want %q", first, took, err, res.Cause, tc.cause)
				}
				if !strings.HasPrefix(string(h.out), "more and more") || string(h.errs) != "all is written" || len(h.calls) != len(res.Calls) || len(h.calls) < 60 || len(h.denials) != harness.Reported(1) {
					t.Errorf("%d, %s: %d bytes, %q, %d calls, of which %d are listed, %+v", first, tc.cause, len(h.out), h.errs, len(h.calls), len(res.Calls), h.denials)
				}
				return true
			})
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
		h    *received
		want error
	}{
		"closed":      {receiveAll(t.Context(), closed.Run, ``, runtime.RunOptions{}), runtime.ErrClosed},
		"no program":  {receiveAll(t.Context(), command(rt, "nosuch"), "", runtime.RunOptions{}), fs.ErrNotExist},
		"bad options": {receiveAll(t.Context(), rt.Exec, ``, runtime.RunOptions{Cwd: "/nosuch"}), fs.ErrNotExist},
		"bad input":   {receiveAll(t.Context(), rt.Run, `for await (const b of process.stdin);`, runtime.RunOptions{Stdin: iotest.ErrReader(broken)}), broken},
	} {
		if h := tc.h; !errors.Is(h.exits[0].Err, tc.want) || h.exits[0].Result != nil {
			t.Errorf("%s: %+v", name, h.exits[0])
		}
	}
	h := receiveAll(gone, rt.Run, endless, runtime.RunOptions{})
	if res := h.result(t); res.Cause != runtime.CauseCanceled || len(h.kinds) != 1 {
		t.Errorf("a context that has ended: %v %+v", h.kinds, res)
	}
	h = receiveAll(t.Context(), rt.Run, ``, runtime.RunOptions{OnStdout: func([]byte) {}})
	if err := h.exits[0].Err; err == nil || !strings.Contains(err.Error(), "gaol: run: option OnEvent") {
		t.Errorf("with OnStdout: %v", err)
	}
}

// Limits apply to streamed output.
func TestStreamLimits(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: 1 << 20, CPUTime: 20 * time.Second}})
	h := receiveAll(t.Context(), rt.Run, endless, runtime.RunOptions{OnOutputLimit: runtime.KillOnOutput})
	if res := h.result(t); res.Cause != runtime.CauseOutput || len(h.out) < 1<<20 {
		t.Errorf("%d bytes, %+v", len(h.out), res)
	}
	h = receiveAll(t.Context(), rt.Run, `process.stdout.write('x'.repeat(3 << 20))`, runtime.RunOptions{})
	if res := h.result(t); res.Cause != "" || len(h.out) != 3<<20 {
		t.Errorf("%d bytes, %+v", len(h.out), res)
	}
	h = receiveAll(t.Context(), rt.Run, `const all = []; for (;;) all.push(Array(1e5).fill(all.length))`, runtime.RunOptions{})
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
			return rt.Run(t.Context(), code, runtime.RunOptions{OnEvent: func(e runtime.Event) {
				if out, ok := e.(runtime.StdoutEvent); ok {
					take(out.Data)
				}
			}})
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
