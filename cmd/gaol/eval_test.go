package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

func TestEvalOptions(t *testing.T) {
	globals := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(globals, []byte(`{"a": [1, {"b": null}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	defaults := runtime.EvaluateOptions{Timeout: 30 * time.Second, MaxOutput: 1 << 20, MaxLogs: 100, MaxLogLength: 1000}
	for _, tc := range []struct {
		name   string
		args   []string
		change func(*runtime.EvaluateOptions)
	}{
		{"none", nil, func(*runtime.EvaluateOptions) {}},
		{"no time limit", []string{"--timeout", "0"}, func(o *runtime.EvaluateOptions) { o.Timeout = -1 }},
		{"limits", []string{"--timeout", "5s", "--max-output", "5k", "--max-logs", "7", "--max-log-length", "9", "--heap", "64m"}, func(o *runtime.EvaluateOptions) {
			*o = runtime.EvaluateOptions{Timeout: 5 * time.Second, MaxOutput: 5 << 10, MaxLogs: 7, MaxLogLength: 9, Heap: 64 << 20}
		}},
		{"globals", []string{"--globals", globals}, func(o *runtime.EvaluateOptions) {
			o.Globals = map[string]any{"a": json.RawMessage(`[1, {"b": null}]`)}
		}},
	} {
		f := &fake{}
		want := defaults
		tc.change(&want)
		if got := f.call(t, "", append(append([]string{"eval"}, tc.args...), "-e", "1 + 1")...); got.code != 0 || f.code != "1 + 1" || f.closed != 1 {
			t.Fatalf("%s: %+v, code %q, closed %d times", tc.name, got, f.code, f.closed)
		}
		if diff := cmp.Diff(want, f.evaluated); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
}

// The arguments of the command line locate the code.
func TestEvalInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{"from a file": {file}, "from standard input": {"-"}, "from -e": {"-e", "from -e"}} {
		f := &fake{}
		if got := f.call(t, "from standard input", append([]string{"eval"}, args...)...); got.code != 0 || f.code != want {
			t.Errorf("%v: %+v, %q", args, got, f.code)
		}
	}
	for text, args := range map[string][]string{
		"nothing to evaluate":           nil,
		"exclude each other":            {"-e", "1", file},
		"no such file":                  {"--globals", "/no/such", "-e", "1"},
		"not a JSON object":             {"--globals", file, "-e", "1"},
		`"--globals" flag: it is empty`: {"--globals", "", "-e", "1"},
		"unexpected argument":           {file, file},
		"evaluate: open /no/":           {"/no/such"},
		"takes no arguments; ":          {"-e", "1", "--", "x"},
		"unknown flag: --stdin":         {"--stdin", "-e", "1"},
	} {
		f := &fake{}
		checkFailure(t, f.call(t, "", append([]string{"eval"}, args...)...), text)
		if f.code != "" {
			t.Errorf("%v: evaluated %q", args, f.code)
		}
	}
}

var failedEvaluation = runtime.Evaluation{
	Value:    json.RawMessage(`[1]`),
	Error:    &runtime.GuestError{Name: "E", Message: "m <", Stack: "E: m <\n    at snippet.mjs:1:1", Frame: "> 1 | x"},
	Logs:     []runtime.Log{{Level: runtime.LogLog, Text: "l", At: 1500 * time.Microsecond}, {Level: runtime.LogWarn, Text: "w"}, {Level: runtime.LogStderr, Text: "s"}, {Level: runtime.LogStdout, Text: "o"}},
	Calls:    []runtime.Call{{Name: "api.get", Duration: 2 * time.Millisecond, Arguments: 3, Result: 4}},
	Duration: 5 * time.Millisecond,
	Usage:    runtime.Usage{CPU: time.Millisecond, PeakMemory: 6, PeakPids: 7},
}

func TestEvalOutput(t *testing.T) {
	f := &fake{evaluation: failedEvaluation}
	got := f.call(t, "", "eval", "-e", "x")
	want := outcome{1, "l\no\n[1]\n", "w\ns\nE: m <\n    at snippet.mjs:1:1\n\n> 1 | x\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got = f.call(t, "", "eval", "--json", "-e", "x")
	want = outcome{1, `{"value":[1],"error":{"name":"E","message":"m <","stack":"E: m <\n    at snippet.mjs:1:1","frame":"> 1 | x"},` +
		`"logs":[{"level":"log","text":"l","ms":1.5},{"level":"warn","text":"w","ms":0},{"level":"stderr","text":"s","ms":0},{"level":"stdout","text":"o","ms":0}],` +
		`"calls":[{"name":"api.get","ms":2,"argumentsBytes":3,"resultBytes":4,"error":""}],` +
		`"durationMs":5,"cause":"","usage":{"cpuMs":1,"peakMemoryBytes":6,"pids":7},"denials":[],"truncated":{"logs":false,"calls":false,"denials":false}}` + "\n", ""}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	f = &fake{evaluation: runtime.Evaluation{}}
	if got = f.call(t, "", "eval", "--json", "-e", "x"); got.stdout != `{"error":null,"logs":[],"calls":[],"durationMs":0,"cause":"","usage":{"cpuMs":0,"peakMemoryBytes":0,"pids":0},"denials":[],"truncated":{"logs":false,"calls":false,"denials":false}}`+"\n" {
		t.Errorf("nothing: %s", got.stdout)
	}
}

func TestEvalStatus(t *testing.T) {
	failed := &runtime.GuestError{Message: "m"}
	for want, e := range map[int]runtime.Evaluation{
		0: {}, 1: {Error: failed}, report.ExitTimeout: {Error: failed, Cause: runtime.CauseTimeout}, report.ExitMemory: {Error: failed, Cause: runtime.CauseMemory},
	} {
		f := &fake{evaluation: e}
		if got := f.call(t, "", "eval", "-e", "x"); got.code != want {
			t.Errorf("%+v: exit status %d, want %d", e, got.code, want)
		}
	}
	f := &fake{evaluation: runtime.Evaluation{Error: failed, Denials: []runtime.Denial{{Scope: "network", Operation: "connect", Target: "AF_INET SOCK_STREAM", Rule: "network.default", Count: 1}}}}
	if got := f.call(t, "", "eval", "-e", "x"); !strings.Contains(got.stderr, "gaol: denied: network connect") {
		t.Errorf("a denial: %s", got.stderr)
	}
}

// A value without JSON is reported beside the log lines and is not a failure.
func TestEvalNoValue(t *testing.T) {
	f := fake{evaluation: runtime.Evaluation{NoValue: "value: it is an EventEmitter"}}
	if got, want := f.call(t, "", "eval", "-e", "x"), (outcome{0, "", "gaol: no value: value: it is an EventEmitter\n"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.evaluation.Error = &runtime.GuestError{Name: "E", Message: "m", Code: "C", Cause: &runtime.GuestError{Message: "why"}}
	got := f.call(t, "", "eval", "--json", "-e", "x")
	if !strings.Contains(got.stdout, `"noValue":"value: it is an EventEmitter"`) || !strings.Contains(got.stdout, `"code":"C","cause":{"name":"","message":"why"`) {
		t.Errorf("%s", got.stdout)
	}
}
