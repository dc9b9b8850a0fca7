package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// logsOf evaluates a snippet, and returns the lines in its events.
func logsOf(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.EvaluateOptions) (logs []runtime.Log, e *runtime.Evaluation, err error) {
	t.Helper()
	h := &received{}
	o.OnEvent = func(e runtime.Event) {
		if l, ok := e.(runtime.LogEvent); ok {
			logs = append(logs, l.Log)
		}
		h.take(e)
	}
	e, err = rt.Evaluate(t.Context(), code, o)
	if len(h.out)+len(h.errs)+len(h.exits) > 0 {
		t.Errorf("output startHonestRuns the lines: %q %q", h.out, h.errs)
	}
	return logs, e, err
}

// The lines of a snippet arrive as they are printed, each as in Logs.
func TestStreamEvaluate(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct {
		name, code string
		o          runtime.EvaluateOptions
		levels     string // of the first lines
		lines      int
		result     string
		failed     string
	}{
		{"all levels", `(() => { console.debug(1); console.log(2); console.info(3); console.warn(4); console.error(5); return 'x' })()`, runtime.EvaluateOptions{}, "debug log info warn error", 5, `"x"`, ""},
		{"other output", `process.stdout.write('a\nb') && 1`, runtime.EvaluateOptions{}, "stdout stdout", 2, `1`, ""},
		{"many", `(() => { for (let i = 0; i < 5000; i++) console.log('x'.repeat(500), i); process.exit(3) })()`, runtime.EvaluateOptions{MaxLogs: 5000}, "log", 5000, "", "ExitError"},
		{"too many", `(() => { for (let i = 0; i < 200; i++) console.log(i); process.stdout.write('\n'.repeat(1e6)); return 1 })()`, runtime.EvaluateOptions{}, "", 100, "1", ""}, // log lines and output have pipes of their own
		{"an error", `(() => { console.log(1); throw new Error('no') })()`, runtime.EvaluateOptions{}, "log", 1, "", "Error"},
		{"no program", `const = 1`, runtime.EvaluateOptions{}, "", 0, "", "SyntaxError"},
	} {
		logs, e, err := logsOf(t, rt, tc.code, tc.o)
		if err != nil || string(e.Value) != tc.result || (e.Error == nil) != (tc.failed == "") || e.Error != nil && e.Error.Name != tc.failed {
			t.Errorf("%s: %v, %+v", tc.name, err, e)
			continue
		}
		var levels []string
		for _, l := range logs[:min(len(logs), len(strings.Fields(tc.levels)))] {
			levels = append(levels, string(l.Level))
		}
		if strings.Join(levels, " ") != tc.levels || len(logs) != tc.lines || !slices.Equal(logs, e.Logs) {
			t.Errorf("%s: %d lines, of levels %q: %.300s", tc.name, len(logs), levels, cmp.Diff(e.Logs, logs))
		}
	}
	if _, e, err := logsOf(t, rt, `1`, runtime.EvaluateOptions{MaxLogs: -1}); err == nil || e != nil {
		t.Errorf("a wrong option: %+v", e)
	}
}

// A line reaches OnEvent before the next is printed. It can end the snippet.
func TestStreamEvaluateIsLive(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	seen := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	e, err := rt.Evaluate(ctx, `(() => { for (let i = 0; ; i++) { console.log(i); seen() } })()`, runtime.EvaluateOptions{Globals: map[string]any{
		"seen": func(ctx context.Context, _ json.RawMessage) (any, error) {
			select {
			case <-seen:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}, OnEvent: func(e runtime.Event) {
		l, ok := e.(runtime.LogEvent)
		if !ok {
			return
		}
		if l.Log.Text != fmt.Sprint(n) {
			t.Errorf("%q is line %d", l.Log.Text, n)
		}
		if n++; n == 10 {
			cancel()
			return
		}
		seen <- struct{}{}
	}})
	if !errors.Is(err, context.Canceled) || e.Cause != runtime.CauseCanceled || len(e.Logs) != 10 || e.Error == nil {
		t.Errorf("%v %+v", err, e)
	}
}
