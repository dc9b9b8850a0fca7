package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// All limits apply to each cell separately.
func TestContextLimits(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{Bindings: bindings()}), runtime.ContextOptions{})
	small := runtime.EvaluateOptions{MaxOutput: 10, MaxCalls: 2, MaxLogs: 3, MaxLogLength: 5}
	for range 2 {
		e := cell(t, c, `for (let i = 0; i < 9; i++) console.log('longer'); let fine = 0; try { for (;;) { echo(); fine++ } } catch (err) { fine += err.code }; fine.length > 3 ? 'x'.repeat(8) : 0`, small)
		if string(e.Value) != `"xxxxxxxx"` || len(e.Logs) != 3 || e.Logs[2].Text != "longe…" || !e.Truncated.Logs || len(e.Calls) != 3 || e.Calls[1].Error != "" || e.Calls[2].Error == "" {
			t.Errorf("%s %v %+v %+v", e.Value, e.Error, e.Logs, e.Calls)
		}
		want(t, c, `fine`, `"2ERR_TOO_MANY_CALLS"`)
		if e = cell(t, c, `'x'.repeat(9)`, small); e.Error == nil || e.Error.Error() != "RangeError: the value has 11 bytes of JSON, the limit is 10" {
			t.Errorf("a large value: %s %v", e.Value, e.Error)
		}
		want(t, c, `console.log(1); 'x'.repeat(1000).length`, `1000`) // the defaults apply again
	}
	e := cell(t, c, `echo.async(1); 5`, runtime.EvaluateOptions{})
	if string(e.Value) != `5` || len(e.Calls) != 1 {
		t.Errorf("%s %+v", e.Value, e.Calls)
	}
	if e.Usage.CPU < 0 || e.Usage.CPU == 0 && !harness.InGVisor() || e.Usage.CPU > 10*time.Second || e.Usage.Memory <= 0 || e.Usage.PeakMemory < e.Usage.Memory/2 || e.Duration <= 0 {
		t.Errorf("%+v %v", e.Usage, e.Duration)
	}
	e = cell(t, c, `const from = process.cpuUsage().user; while (process.cpuUsage().user < from + 50_000);`, runtime.EvaluateOptions{})
	if e.Usage.CPU < 30*time.Millisecond {
		t.Errorf("a busy one: %+v", e.Usage)
	}
}

// A call that one cell has started continues after it, and the next cell can await its
// result.
func TestContextCallsOutliveCells(t *testing.T) {
	release := make(chan struct{})
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{
		"wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-release
			return "waited", ctx.Err()
		},
	}})
	c := newContext(t, rt, runtime.ContextOptions{})
	e := cell(t, c, `const answer = wait.async(); 1`, runtime.EvaluateOptions{})
	if len(e.Calls) != 1 || e.Calls[0].Error != "the cell ended first" {
		t.Errorf("%+v", e.Calls)
	}
	close(release)
	e = cell(t, c, `const second = await wait.async(); [await answer, second]`, runtime.EvaluateOptions{})
	if string(e.Value) != `["waited","waited"]` || len(e.Calls) != 1 || e.Calls[0].Error != "" {
		t.Errorf("%s %v %+v", e.Value, e.Error, e.Calls)
	}
}

// Each cell may have separate globals. Values without JSON are rejected.
func TestContextOptions(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Env: map[string]string{"A": "1"}})
	if res := harness.Run(t, rt, `import { mkdirSync } from 'node:fs'; mkdirSync('/workspace/sub')`, runtime.RunOptions{}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	c := newContext(t, rt, runtime.ContextOptions{
		Env: map[string]string{"B": "2"}, Cwd: "/workspace/sub", Heap: 64 << 20,
		Globals: map[string]any{"f": func(context.Context, json.RawMessage) (any, error) { return "called", nil }, "d": 1},
	})
	e := cell(t, c, `[d, f(), process.env.A, process.env.B, process.cwd(), require('node:v8').getHeapStatistics().heap_size_limit < 300 << 20]`,
		runtime.EvaluateOptions{Globals: map[string]any{"d": map[string]any{"at": time.UnixMilli(0), "b": []byte("x")}}})
	if string(e.Value) != `[{"at":"1970-01-01T00:00:00.000Z","b":"eA=="},"called","1","2","/workspace/sub",true]` {
		t.Errorf("%s %v", e.Value, e.Error)
	}
	want(t, c, `d.at instanceof Date`, `true`)
	for text, o := range map[string]runtime.EvaluateOptions{
		"option Heap: it is the context's":                           {Heap: 32 << 20},
		"option Env: it is the context's":                            {Env: map[string]string{"C": "3"}},
		"option Cwd: it is the context's":                            {Cwd: "/tmp"},
		"option Permissions: it is the context's":                    {Permissions: policy.Strict()},
		"option Globals: api.f is a function":                        {Globals: map[string]any{"api": map[string]any{"f": func(context.Context, json.RawMessage) (any, error) { return nil, nil }}}},
		`option Globals: "a-b" is not a valid JavaScript identifier`: {Globals: map[string]any{"a-b": 1}},
		`option Form: "9" is not a valid form`:                       {Form: "9"},
		"limit MaxLogs: -1 is not between 1 and 100000":              {MaxLogs: -1},
	} {
		if _, err := c.Evaluate(t.Context(), `1`, o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	for text, o := range map[string]runtime.ContextOptions{
		"limit Heap":                         {Heap: 1 << 40},
		"option Globals: a function without": {Globals: map[string]any{"f": runtime.Function{}}},
		"option Env":                         {Env: map[string]string{"": "3"}},
		"no such file or directory":          {Cwd: "/nosuch"},
	} {
		if _, err := rt.NewContext(t.Context(), o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	want(t, c, `1`, `1`)
}

// Permissions apply in a context as in a run. Denials are reported with their cell.
func TestContextPermissions(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}})
	want(t, c, `const { spawnSync } = require('node:child_process'); 1`, `1`)
	for range 2 {
		e := cell(t, c, `spawnSync('true').error.code`, runtime.EvaluateOptions{})
		if string(e.Value) != `"EPERM"` || harness.ReportsDenials() && (len(e.Denials) != 1 || e.Denials[0].Scope != policy.ChildProcess || e.Denials[0].Count < 1) {
			t.Errorf("%s %v %+v", e.Value, e.Error, e.Denials)
		}
	}
	if e := cell(t, c, `1`, runtime.EvaluateOptions{}); len(e.Denials) != 0 {
		t.Errorf("%+v", e.Denials)
	}
	if !harness.Needs(t, runtime.FeatureLandlock) {
		return
	}
	strict := newContext(t, harness.Create(t, runtime.Options{Permissions: policy.Strict()}), runtime.ContextOptions{})
	want(t, strict, `const kept = 1; await null; kept`, `1`)
	if e := cell(t, strict, `for (;;);`, runtime.EvaluateOptions{Timeout: 100 * time.Millisecond}); e.Error == nil || e.Cause != "" {
		t.Errorf("%v %q", e.Error, e.Cause)
	}
	want(t, strict, `kept`, `1`)
}

// Neither the context nor the host grows with the number of cells.
func TestContextDoesNotGrow(t *testing.T) {
	tier.Soak(t)
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	measure := func() int64 { return cell(t, c, `1`, runtime.EvaluateOptions{}).Usage.Memory }
	some := func(n int) {
		for i := range n {
			want(t, c, fmt.Sprintf(`let big = { text: 'x'.repeat(100000) + %d }; console.log(big); big.text.length`, i%10), `100001`)
		}
	}
	some(100)
	before, beforeHost := measure(), harness.LiveHeap()
	some(400)
	if grown := measure() - before; grown > 24<<20 {
		t.Errorf("it grew by %d bytes", grown)
	}
	if grown := harness.LiveHeap() - beforeHost; grown > 4<<20 {
		t.Errorf("the host grew by %d bytes", grown)
	}
}
