package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/repl"
	"gaol/cmd/gaol/report"
	"gaol/internal/snippet"
	"gaol/runtime"
)

// Without a terminal, lines are joined to cells until brackets are closed.
func TestReplPlain(t *testing.T) {
	f := &fake{}
	f.session.guest = func(_ context.Context, code string, o runtime.EvaluateOptions) *runtime.Evaluation {
		switch code {
		case "1":
			o.OnLog(runtime.Log{Level: runtime.LogInfo, Text: "logged"})
			o.OnLog(runtime.Log{Level: runtime.LogWarn, Text: "warned"})
			return &runtime.Evaluation{Value: json.RawMessage(`"shown\u001b[2J"`)}
		case "2":
			return &runtime.Evaluation{Value: json.RawMessage(`"undefined"`)}
		}
		e := &runtime.Evaluation{Error: &runtime.GuestError{Name: "E", Message: "m", Frame: "> 1 | x"}}
		e.Truncated.Logs = true
		return e
	}
	got := f.call(t, "1\n2\n\n   \nf(\n3)\n.help\n", "repl")
	want := outcome{1, "logged\nshown\x1b[2J\n", "warned\ngaol: the cell printed more lines, which are not shown\nE: m\n\n> 1 | x\ngaol: " + repl.Help + "\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "f(\n3)"}, f.session.cells); diff != "" {
		t.Errorf("cells (-want +got)\n%s", diff)
	}
	o := f.session.options
	if o.OnLog = nil; !cmp.Equal(o, runtime.EvaluateOptions{Timeout: 30 * time.Second, MaxLogs: 8_000, MaxLogLength: 2_000, Form: runtime.ResultText}) || f.closed != 1 {
		t.Errorf("%+v, closed %d times", o, f.closed)
	}
	if f.context.IdleTimeout >= 0 || !f.context.LastValue {
		t.Errorf("%+v", f.context)
	}
}

func TestReplOptions(t *testing.T) {
	globals := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(globals, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	if got := f.call(t, "1\n", "repl", "--globals", globals, "--memory", "128m", "--timeout", "0"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if f.options.Limits.Memory != 128<<20 || f.session.options.Timeout >= 0 || !cmp.Equal(f.context.Globals, map[string]any{"a": json.RawMessage("1")}) {
		t.Errorf("%+v %+v %+v", f.options.Limits, f.session.options, f.context)
	}
	for text, args := range map[string][]string{
		`"--globals" flag: it is empty`: {"--globals", ""},
		"not a JSON object":             {"--globals", "/dev/null"},
		"no such file":                  {"--globals", "/no/such"},
		"unknown command \"x\"":         {"x"},
		"unknown flag: --json":          {"--json"},
		"invalid argument \"-1s\" for":  {"--timeout", "-1s"},
	} {
		f := &fake{}
		checkFailure(t, f.call(t, "1\n", append([]string{"repl"}, args...)...), text)
		if f.closed != 0 {
			t.Errorf("%v: a sandbox was created", args)
		}
	}
}

// The exit status depends on how the session ended.
func TestReplStatus(t *testing.T) {
	lost := func(why error, cause runtime.Cause) func(*fake) {
		return func(f *fake) {
			f.session.guest = func(_ context.Context, code string, _ runtime.EvaluateOptions) *runtime.Evaluation {
				f.session.ended = fmt.Errorf("%w: %w", runtime.ErrContextEnded, why)
				return &runtime.Evaluation{Error: &runtime.GuestError{Message: "m"}, Cause: cause}
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*fake)
		code   int
		cells  int
	}{
		"no error": {func(*fake) {}, 0, 2},
		"an error": {func(f *fake) {
			f.session.guest = func(context.Context, string, runtime.EvaluateOptions) *runtime.Evaluation {
				return &runtime.Evaluation{Error: &runtime.GuestError{Message: "m"}}
			}
		}, 1, 2},
		"an exit":          {lost(&runtime.ExitError{Code: 7}, ""), 7, 1},
		"an exit with 0":   {lost(&runtime.ExitError{Code: 0}, ""), 0, 1},
		"lost by time":     {lost(errors.New("x"), runtime.CauseTimeout), report.ExitTimeout, 1},
		"lost by memory":   {lost(errors.New("x"), runtime.CauseMemory), report.ExitMemory, 1},
		"lost by a signal": {lost(errors.New("x"), runtime.CauseSignal), 1, 1},
		"closing fails":    {func(f *fake) { f.closeErr = errors.New("no") }, report.ExitFailure, 2},
		"no context":       {func(f *fake) { f.contextErr = errors.New("no") }, report.ExitFailure, 0},
	} {
		f := &fake{}
		tc.change(f)
		got := f.call(t, "1\n2\n", "repl")
		if got.code != tc.code || len(f.session.cells) != tc.cells || f.closed != 1 {
			t.Errorf("%s: %+v, %d cells, closed %d times", name, got, len(f.session.cells), f.closed)
		}
	}
	f := &fake{}
	if got := f.call(t, "1\n.exit\n2\n", "repl"); got.code != 0 || len(f.session.cells) != 1 {
		t.Errorf(".exit: %+v, %q", got, f.session.cells)
	}
	f = &fake{}
	if got := f.call(t, "f(1", "repl"); got.code != 0 || !cmp.Equal(f.session.cells, []string{"f(1"}) {
		t.Errorf("the end inside a cell: %+v, %q", got, f.session.cells)
	}
	f = &fake{}
	checkFailure(t, f.call(t, strings.Repeat("x", 1<<20+1), "repl"), "a line of more than")
	f = &fake{}
	checkFailure(t, f.call(t, "/*\n"+strings.Repeat("x", snippet.MaxCode)+"\ny\n*/\n1\n", "repl"), "a cell of more than")
	if len(f.session.cells) != 0 {
		t.Errorf("a cell that is too long was evaluated %d times", len(f.session.cells))
	}
}

// On a terminal there is no time limit, so the help must not show a default.
func TestReplHelp(t *testing.T) {
	got := (&fake{}).call(t, "", "repl", "--help")
	if got.code != 0 || !strings.Contains(got.stdout, "none at a terminal, else 30s") || strings.Contains(got.stdout, "(default 30s)") {
		t.Errorf("%+v", got)
	}
}
