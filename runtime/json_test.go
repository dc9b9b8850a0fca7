package runtime

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/policy"
)

var someError = &GuestError{
	Name: "Error", Message: "m", Stack: "s", Code: "ENOENT", Properties: map[string]json.RawMessage{"errno": json.RawMessage("-2")},
	Cause: &GuestError{Message: "cause"},
}

var someDenials = []Denial{{Scope: "fs", Operation: policy.Operation("write"), Target: "/x", Rule: "fs.default", Count: 2, Source: SourceAudit, Address: "192.0.2.1"}}

var someCalls = []Call{{Name: "api.get", Duration: 5 * time.Microsecond, Arguments: 2, Result: 3, Error: "e"}}

func someUsage() Usage {
	return Usage{CPU: 1500 * time.Microsecond, PeakMemory: 5, PeakPids: 6, Network: NetworkUsage{Connections: 1, BytesOut: 2}}
}

// transfer encodes v and decodes it into another value.
func transfer[T any](t *testing.T, v *T) *T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var got T
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestRunBack(t *testing.T) {
	want := &Result{
		Stdout: []byte("\xff<&>"), Stderr: []byte("text"), ExitCode: 3, Signal: "SIGKILL", Cause: CauseMemory, Value: json.RawMessage(`{"a":1}`),
		Error: someError, Duration: 1234 * time.Microsecond, Queued: 7 * time.Millisecond, Usage: someUsage(),
		Launcher: LauncherExec, LauncherReason: "why", Denials: someDenials, Calls: someCalls,
	}
	want.Truncated.Stdout, want.Truncated.Calls, want.Truncated.Denials = true, true, true
	if diff := cmp.Diff(want, transfer(t, want)); diff != "" {
		t.Error(diff)
	}
	empty := &Result{Stdout: []byte{}, Stderr: []byte{}}
	if diff := cmp.Diff(empty, transfer(t, empty), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestEvaluationBack(t *testing.T) {
	framed := *someError
	framed.Frame = "1 | x"
	want := &Evaluation{
		Value: json.RawMessage(`[1]`), NoValue: "n", Error: &framed, Logs: []Log{{Level: LogWarn, Text: "l", At: 3 * time.Microsecond}},
		Calls: someCalls, Duration: time.Second, Cause: CauseTimeout, Usage: someUsage(), Denials: someDenials,
	}
	want.Truncated.Logs = true
	if diff := cmp.Diff(want, transfer(t, want)); diff != "" {
		t.Error(diff)
	}
}

// The members are those that gaol run --json and the HTTP API promise: also for empty lists, and for errors, of which only
// those of evaluations have a frame.
func TestResultForm(t *testing.T) {
	failed := &GuestError{Name: "E", Message: "m", Cause: &GuestError{Message: "<why>\u2028"}}
	for _, c := range []struct {
		v    any
		want string
	}{
		{Result{Stdout: []byte("a\xff"), Error: failed, Duration: 1234567, Queued: 999}, `{"stdout":"a�","stderr":"","stdoutBytes":"Yf8=","exitCode":0,"signal":"","cause":"","error":{"name":"E","message":"m","stack":"","cause":{"name":"","message":"<why>\u2028","stack":""},"text":"E: m: <why>\u2028"},"durationMs":1.234,"usage":{"cpuMs":0,"peakMemoryBytes":0,"pids":0},"truncated":{"stdout":false,"stderr":false,"denials":false},"denials":[],"launcher":"zygote"}`},
		{&Evaluation{}, `{"error":null,"logs":[],"calls":[],"durationMs":0,"cause":"","usage":{"cpuMs":0,"peakMemoryBytes":0,"pids":0},"denials":[],"truncated":{"logs":false,"calls":false,"denials":false}}`},
		{&Evaluation{Error: &GuestError{Name: "E"}, Value: json.RawMessage(`{"a":1,"a":"\u003c"}`)}, `{"value":{"a":1,"a":"\u003c"},"error":{"name":"E","message":"","stack":"","frame":""},"logs":[],"calls":[],"durationMs":0,"cause":"","usage":{"cpuMs":0,"peakMemoryBytes":0,"pids":0},"denials":[],"truncated":{"logs":false,"calls":false,"denials":false}}`},
		{Connection{}, `{"host":"","address":"","port":0,"rule":"","bytesIn":0,"bytesOut":0,"durationMs":0,"outcome":""}`},
		{someCalls[0], `{"name":"api.get","ms":0.005,"argumentsBytes":2,"resultBytes":3,"error":"e"}`},
	} {
		var line strings.Builder
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(c.v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want+"\n", line.String()); diff != "" {
			t.Errorf("%T: %s", c.v, diff)
		}
	}
}

// Tags name all members, so that a new field is in the JSON under a name of its kind.
func TestResultTags(t *testing.T) {
	for _, v := range []any{Result{}, Truncated{}, Evaluation{}, EvaluationTruncated{}, GuestError{}, Usage{}, NetworkUsage{}, Log{}, Call{}, Connection{}, Denial{}} {
		for f := range reflect.TypeOf(v).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name != "-" && !strings.HasPrefix(strings.ToLower(name), name[:1]) {
				t.Errorf("%T.%s: tag json:%q", v, f.Name, name)
			}
			if f.Type == reflect.TypeFor[time.Duration]() && !strings.HasSuffix(strings.ToLower(name), "ms") {
				t.Errorf("%T.%s: %q does not end in Ms", v, f.Name, name)
			}
		}
	}
}
