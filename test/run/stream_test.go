package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// received is the content of the events of a run.
type received struct {
	out, errs []byte
	calls     []runtime.Call
	denials   []runtime.Denial
	kinds     []string // without consecutive duplicates
	exits     []runtime.ExitEvent
}

func (h *received) take(e runtime.Event) {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", e), "runtime.")
	if len(h.kinds) == 0 || h.kinds[len(h.kinds)-1] != kind {
		h.kinds = append(h.kinds, kind)
	}
	switch e := e.(type) {
	case runtime.StdoutEvent:
		h.out = append(h.out, e.Data...)
	case runtime.StderrEvent:
		h.errs = append(h.errs, e.Data...)
	case runtime.CallEvent:
		h.calls = append(h.calls, e.Call)
	case runtime.DenialEvent:
		h.denials = append(h.denials, e.Denial)
	case runtime.ExitEvent:
		h.exits = append(h.exits, e)
	}
}

// receive consumes all events, and fails the test if they do not end with the exit.
func receive(t testing.TB, events iter.Seq[runtime.Event]) *received {
	t.Helper()
	h := &received{}
	for e := range events {
		h.take(e)
	}
	h.ended(t)
	return h
}

func (h *received) ended(t testing.TB) {
	t.Helper()
	if len(h.exits) != 1 || h.kinds[len(h.kinds)-1] != "ExitEvent" {
		t.Fatalf("%d exits, events are %v", len(h.exits), h.kinds)
	}
}

// result is that of a run that could be made.
func (h *received) result(t testing.TB) *runtime.Result {
	t.Helper()
	res, err := h.exits[0].Result, h.exits[0].Err
	if res == nil || err != nil && res.Cause != runtime.CauseCanceled {
		t.Fatal(err)
	}
	return res
}

// receiveAll makes a run, and consumes all of its events. Its end counts as an exit.
func receiveAll(ctx context.Context, run func(context.Context, string, runtime.RunOptions) (*runtime.Result, error), code string, o runtime.RunOptions) *received {
	h := &received{}
	o.OnEvent = h.take
	res, err := run(ctx, code, o)
	h.take(runtime.ExitEvent{Result: res, Err: err})
	return h
}

// command is a run of a program of the image for receiveAll.
func command(rt *runtime.NodeRuntime, name string, args ...string) func(context.Context, string, runtime.RunOptions) (*runtime.Result, error) {
	return func(ctx context.Context, _ string, o runtime.RunOptions) (*runtime.Result, error) {
		return rt.Command(ctx, name, args, o)
	}
}

// All output arrives in order, however the program ends and however slow the consumer is.
func TestStreamLosesNothing(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	count := func(from, to int) string {
		var text strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&text, "line %d\n", i)
		}
		return text.String()
	}
	const line = `import { writeSync } from 'node:fs'; const line = (fd, i) => writeSync(fd, 'line ' + i + '\n');`
	for _, tc := range []struct {
		name, code string
		out, errs  string
		exit       int
	}{
		{"nothing", ``, "", "", 0},
		{"no newline", `process.stdout.write('a'); process.stderr.write('b')`, "a", "b", 0},
		{"many before the exit", line + `for (let i = 0; i < 5000; i++) line(1, i); process.exit(3)`, count(0, 5000), "", 3},
		{"by console", `for (let i = 0; i < 2000; i++) console.log('line', i); process.exit(4)`, count(0, 2000), "", 4},
		{"both outputs in turn", line + `for (let i = 0; i < 3000; i++) line(1 + i % 2, i >> 1); process.exit(5)`, count(0, 1500), count(0, 1500), 5},
		{"10 MB at once", `process.stdout.write('x'.repeat(10e6), () => process.exit(6))`, strings.Repeat("x", 10e6), "", 6},
		{"before a kill", line + `line(1, 0); line(2, 0); process.kill(process.pid, 'SIGKILL')`, count(0, 1), count(0, 1), 137},
		{"a child's last", `import { spawnSync } from 'node:child_process'; spawnSync('sh', ['-c', 'echo line 0; echo line 1 >&2'], { stdio: 'inherit' })`, count(0, 1), count(1, 2), 0},
	} {
		for _, late := range []time.Duration{0, 200 * time.Millisecond} {
			h := &received{}
			begin := sync.OnceFunc(func() { time.Sleep(late) }) // usually the program has ended by then
			res, err := rt.Run(t.Context(), tc.code, runtime.RunOptions{OnEvent: func(e runtime.Event) { begin(); h.take(e) }})
			h.take(runtime.ExitEvent{Result: res, Err: err})
			if !bytes.Equal(h.out, []byte(tc.out)) || !bytes.Equal(h.errs, []byte(tc.errs)) {
				t.Errorf("%s, after %v: %d and %d bytes, want %d and %d: %.200q %.200q", tc.name, late, len(h.out), len(h.errs), len(tc.out), len(tc.errs), h.out, h.errs)
			}
			if res := h.result(t); res.ExitCode != tc.exit || res.Stdout != nil || res.Stderr != nil || res.Truncated.Stdout {
				t.Errorf("%s: %+v", tc.name, res)
			}
		}
	}
}

// Output arrives while the program runs. The order across streams is the order in which the
// host reads them.
func TestStreamIsLive(t *testing.T) {
	seen := make(chan struct{})
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{
		"seen": func(ctx context.Context, _ json.RawMessage) (any, error) {
			select {
			case <-seen:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}})
	var order []string
	res, err := rt.Run(t.Context(), `
		for (let i = 0; i < 5; i++) { process.stdout.write('o'); seen(); process.stderr.write('e'); seen(); }
		__return('done')`, runtime.RunOptions{OnEvent: func(e runtime.Event) {
		switch e := e.(type) {
		case runtime.StdoutEvent:
			order = append(order, string(e.Data))
			seen <- struct{}{}
		case runtime.StderrEvent:
			order = append(order, string(e.Data))
			seen <- struct{}{}
		case runtime.CallEvent:
			order = append(order, e.Call.Name)
		}
	}})
	if err != nil || string(res.Value) != `"done"` {
		t.Fatalf("%v %+v", err, res)
	}
	outputs := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return s == "seen" })
	if strings.Join(outputs, "") != strings.Repeat("oe", 5) || len(order) != 20 {
		t.Errorf("got %q", order)
	}
}

// All kinds of runs can be streamed, with their options.
func TestStreamKinds(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	o := runtime.RunOptions{Stdin: strings.NewReader("input"), Env: map[string]string{"X": "env"}}
	const code = `for await (const b of process.stdin) console.log(String(b), process.env.X, typeof __return)`
	h := receiveAll(t.Context(), rt.Run, code, o)
	if string(h.out) != "input env function\n" {
		t.Errorf("run: %q %q", h.out, h.errs)
	}
	o.Stdin = strings.NewReader("input")
	if h = receiveAll(t.Context(), rt.Exec, code, o); string(h.out) != "input env undefined\n" {
		t.Errorf("exec: %q %q", h.out, h.errs)
	}
	o.Stdin = strings.NewReader("input")
	h = receiveAll(t.Context(), command(rt, "sh", "-c", `cat; echo " $X"; echo $0 >&2; exit 7`), "", o)
	if string(h.out) != "input env\n" || string(h.errs) != "sh\n" || h.result(t).ExitCode != 7 {
		t.Errorf("command: %q %q %+v", h.out, h.errs, h.exits)
	}
	if res := h.result(t); res.Duration <= 0 || res.Usage.CPU <= 0 {
		t.Errorf("%+v", res)
	}
}

// Each call is an event, as Result lists it. That includes calls in progress at the end,
// and more than a slow consumer's queue holds.
func TestStreamCalls(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{
		"echo": func(_ context.Context, args json.RawMessage) (any, error) { return args, nil },
		"fail": func(context.Context, json.RawMessage) (any, error) { return nil, errNoUser },
		"hang": func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}})
	h := &received{}
	begin := sync.OnceFunc(func() { time.Sleep(300 * time.Millisecond) })
	res, err := rt.Run(t.Context(), `
		try { fail() } catch {}
		await Promise.all(Array.from({ length: 400 }, (_, i) => echo.async(i)));
		hang.async(); hang.async(); console.log(String(echo('last'))); process.exit(0)`, runtime.RunOptions{OnEvent: func(e runtime.Event) { begin(); h.take(e) }})
	if err != nil {
		t.Fatal(err)
	}
	byName := func(a, b runtime.Call) int {
		return strings.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
	}
	want := slices.SortedFunc(slices.Values(res.Calls), byName)
	if diff := cmp.Diff(want, slices.SortedFunc(slices.Values(h.calls), byName)); diff != "" || len(want) != 404 {
		t.Errorf("%d calls; listed (-), events (+):\n%s", len(want), diff)
	}
	if string(h.out) != "last\n" || h.calls[0].Name != "fail" || h.calls[0].Error != errNoUser.Message {
		t.Errorf("%q, the first is %+v", h.out, h.calls[0])
	}
}

// A denial arrives before the program's output about it, once. The hint, which is known
// only at the end, arrives before the exit.
func TestStreamDenials(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.Create(t, runtime.Options{Permissions: policy.Permissions{
		ChildProcess: policy.Scope{Default: policy.Deny},
		FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{
			Mode: policy.Deny, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/workspace/kept/**"},
		}}},
	}})
	h := receiveAll(t.Context(), rt.Run, `
		import { spawnSync } from 'node:child_process'; import { writeFileSync, writeSync } from 'node:fs';
		for (let i = 0; i < 5; i++) spawnSync('true');
		writeSync(1, 'denied');
		writeFileSync('kept/a', '')`, runtime.RunOptions{})
	res := h.result(t)
	if string(h.out) != "denied" || len(h.denials) != 2 || h.kinds[0] != "DenialEvent" {
		t.Fatalf("%q, %+v, %v: %s", h.out, h.denials, h.kinds, h.errs)
	}
	if n := len(h.kinds); h.kinds[n-2] != "DenialEvent" {
		t.Errorf("the hint's place: %v", h.kinds)
	}
	want := slices.Clone(res.Denials)
	for i := range want {
		want[i].Count = 1
	}
	if diff := cmp.Diff(want, h.denials); diff != "" || res.Denials[0].Count != 5 || res.Denials[1].Source != runtime.SourceStderr {
		t.Errorf("listed %+v, diff (-), events (+):\n%s", res.Denials, diff)
	}
}

// A consumer that reads nothing blocks the program, and the host buffers only a bounded
// part.
func TestStreamBackPressure(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const total, piece = 64 << 20, 16 << 10
	written := func() (n int) {
		text, err := rt.FS().ReadFile("/workspace/count")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		_, _ = fmt.Sscan(string(text), &n)
		return n
	}
	before := harness.LiveHeap()
	first, got, pauses := 0, 0, 0
	res, err := rt.Run(t.Context(), fmt.Sprintf(`
		import { openSync, writeSync } from 'node:fs';
		const count = openSync('/workspace/count', 'w'), piece = Buffer.alloc(%d, 'x');
		for (let n = piece.length; n <= %d; n += piece.length) { writeSync(1, piece); writeSync(count, String(n).padStart(12), 0); }`, piece, total), runtime.RunOptions{OnEvent: func(e runtime.Event) {
		out, ok := e.(runtime.StdoutEvent)
		if !ok {
			return
		}
		got += len(out.Data)
		if got < (pauses*total)/3 {
			return
		}
		pauses++
		first = -1
		harness.WaitFor(t, "the program blocks", func() bool {
			last := first
			first = written()
			time.Sleep(200 * time.Millisecond)
			return first == last
		})
		if first-got > 2<<20 {
			t.Errorf("it wrote %d bytes, of which %d were read", first, got)
		}
		if more := harness.LiveHeap() - before; more > 8<<20 {
			t.Errorf("the host used %d bytes", more)
		}
	}})
	if err != nil || res.ExitCode != 0 || got != total || pauses < 3 {
		t.Errorf("%d bytes, %d pauses, %v %+v", got, pauses, err, res)
	}
}
