package run

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gaol/runtime"
	"gaol/test/harness"
)

// unleaked returns a function that fails the test if runs have left something in this
// process. The caller makes one run before, because some things are created once and kept.
func unleaked(t *testing.T) (check func()) {
	t.Helper()
	before, fds := goleak.IgnoreCurrent(), harness.OpenDescriptors()
	return func() {
		t.Helper()
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
		if more := harness.OpenDescriptors() - fds; more > 0 {
			t.Errorf("%d descriptors are left", more)
		}
	}
}

// However a run ends, its host functions end with it, and nothing is left.
func TestControlEnds(t *testing.T) {
	w := &checkingHost{size: 1 << 20}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}})
	checkHonestRun(t, rt)
	check := unleaked(t)
	for _, tc := range harness.Some([]struct {
		name, code string
		cause      runtime.Cause
		exitCode   int
		calls      int // at least so many are listed
	}{
		{"killed in a call", `hang()`, runtime.CauseTimeout, 137, 1},
		{"killed with calls under way", `for (let i = 0; i < 500; i++) hang.async()`, runtime.CauseTimeout, 137, 256},
		{"killed amid answers", `for (;;) await Promise.all(Array.from({ length: 50 }, () => large.async()))`, runtime.CauseTimeout, 137, 50},
		{"killed with its answers unread", `for (let i = 1; i <= 300; i++) send(call(i, 1, '[]')); for (;;);`, runtime.CauseTimeout, 137, 300},
		{"killed in a frame", `send(call(1, 0, '[]'), call(2, 2, '[]').subarray(0, 14)); for (;;);`, runtime.CauseTimeout, 137, 1},
		{"killed after the head of a frame", `send(u32(200 << 10), Buffer.from([3]), Buffer.alloc(100 << 10)); for (;;);`, runtime.CauseTimeout, 137, 0},
		{"killed while it sends values", `const v = value(JSON.stringify('x'.repeat(1 << 20))); for (;;) send(v)`, runtime.CauseTimeout, 137, 0},
		{"killed by itself", `for (let i = 0; i < 300; i++) hang.async(); await 1; await 1; process.kill(process.pid, 'SIGKILL')`, runtime.CauseSignal, 137, 0},
		{"out of memory", `for (let i = 0; i < 300; i++) hang.async(); const all = []; setImmediate(() => { for (;;) all.push(Buffer.alloc(16 << 20, 1)) })`, runtime.CauseMemory, 137, 1},
		{"an exit with calls under way", `for (let i = 0; i < 300; i++) hang.async(); setTimeout(() => process.exit(3), 50)`, "", 3, 256},
		{"an exit in a frame", `send(call(1, 0, '[]'), call(2, 2, '[]').subarray(0, 14)); process.exit(4)`, "", 4, 0},
		{"an error with calls under way", `hang.async().catch(() => {}); setTimeout(() => { throw new Error('x') }, 50)`, "", 1, 1},
		{"a normal end", `await note.async(1)`, "", 0, 1},
		{"a call at the exit", `process.on('exit', () => note(1))`, "", 0, 1},
	}) {
		o := runtime.RunOptions{Timeout: 500 * time.Millisecond}
		res, _ := runInTime(t, rt, raw+tc.code, &o, func(res *runtime.Result) bool { return res.Cause == tc.cause && len(res.Calls) >= tc.calls })
		if res.Cause != tc.cause || res.ExitCode != tc.exitCode || len(res.Calls) < tc.calls {
			t.Errorf("%s: cause %q, exit code %d, %d calls, %s", tc.name, res.Cause, res.ExitCode, len(res.Calls), res.Stderr)
		}
		if late := res.Duration - o.Timeout; late > 20*time.Second {
			t.Errorf("%s: it ended %v late", tc.name, late)
		}
		w.check(t)
	}
	checkHonestRun(t, rt)
	check()
}

// The memory that a guest can make its host keep is bounded, whatever the guest does not
// read or complete.
func TestControlMemory(t *testing.T) {
	const mib = 1 << 20
	w := &checkingHost{size: 4*mib - 2}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2, Memory: 512 << 20}})
	checkHonestRun(t, rt)
	check := unleaked(t)
	for _, tc := range harness.Some([]struct {
		name, code string
		most       int64
	}{
		{"results that are not read", `for (let i = 1; i <= 1024; i++) send(call(i, 1, '[]'))`, 16*4*mib + 4*mib},
		{"arguments of calls that hang", `const args = '[' + ' '.repeat((256 << 10) - 2) + ']'; for (let i = 1; i <= 1024; i++) send(call(i, 0, args))`, 32*mib + 4*mib},
		{"more calls than the limit", `for (let i = 1; i <= 5000; i++) try { send(call(i, 0, '[]')) } catch { break }`, 4 * mib},
		{"errors that are not read", `const twice = '[{"a":1,"a":1}]'; for (let i = 1; i < 1e6; i++) try { send(call(i, 2, twice)) } catch { break }`, 4 * mib},
		{"values", `const v = value(JSON.stringify('x'.repeat((16 << 20) - 2))); for (let i = 0; i < 40; i++) send(v)`, 3 * 16 * mib},
		{"a value without an end", `const v = value(JSON.stringify('x'.repeat((16 << 20) - 2))); send(v.subarray(0, -1))`, 2 * 16 * mib},
		{"only the head of a frame", `send(u32(16 << 20), Buffer.from([1]))`, 4 * mib},
	}) {
		before := harness.RetainedHeap()
		var up bool
		var during int64
		ctx, cancel := context.WithCancel(t.Context())
		res, err := rt.Run(ctx, raw+tc.code+`; console.log('up'); setTimeout(() => {}, 1e9)`, runtime.RunOptions{OnStdout: func([]byte) {
			up, during = true, harness.Settle(tc.most, func() int64 { return harness.RetainedHeap() - before })
			cancel()
		}})
		if res == nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if !up || res.Cause != runtime.CauseCanceled {
			t.Fatalf("%s: up: %v, cause %q, exit code %d, stderr %.500s", tc.name, up, res.Cause, res.ExitCode, res.Stderr)
		}
		t.Logf("%s: %.1f MiB", tc.name, float64(during)/mib)
		if during > tc.most {
			t.Errorf("%s: the host keeps %d bytes, want %d at most", tc.name, during, tc.most)
		}
		w.check(t)
		if left := harness.Settle(2*mib, func() int64 { return harness.RetainedHeap() - before }); left > 2*mib {
			t.Errorf("%s: %d bytes are left", tc.name, left)
		}
	}
	checkHonestRun(t, rt)
	check()
}

// A program that sends more than the host accepts at once has to wait, and gets all its
// results.
func TestControlThrottles(t *testing.T) {
	w := &checkingHost{}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2, Memory: 512 << 20}})
	calls := harness.Fewer(400, 100)
	res := harness.Run(t, rt, fmt.Sprintf(`
		const text = 'x'.repeat(250_000);
		const all = await Promise.all(Array.from({ length: %d }, (_, i) => i %% 100 === 99 ? note(text) : note.async(text)));
		__return(all.every(([x]) => x === text))`, calls), runtime.RunOptions{})
	if string(res.Value) != "true" || len(res.Calls) != calls {
		t.Errorf("value %s, %d calls, exit code %d, cause %q, %s", res.Value, len(res.Calls), res.ExitCode, res.Cause, res.Stderr)
	}
	for _, c := range res.Calls {
		if c.Error != "" {
			t.Fatalf("%+v", c)
		}
	}
	// A program that keeps calling beyond its limit gets an error each time.
	rt = harness.Create(t, runtime.Options{Bindings: map[string]any{"note": w.note}, Calls: runtime.CallLimits{Calls: 10}})
	res = harness.Run(t, rt, `
		const codes = (await Promise.allSettled(Array.from({ length: 5000 }, () => note.async()))).map(r => r.reason?.code);
		for (let i = 0; i < 5000; i++) try { note() } catch (err) { codes.push(err.code) }
		__return([codes.length, codes.filter(c => c === 'ERR_TOO_MANY_CALLS').length])`, runtime.RunOptions{})
	if string(res.Value) != "[10000,9990]" || !res.Truncated.Calls || !strings.Contains(res.Calls[999].Error, "more than 10 calls") {
		t.Errorf("value %s, %s", res.Value, res.Stderr)
	}
	w.check(t)
}
