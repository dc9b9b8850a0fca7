package resultjson

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
)

var guestError = &runtime.GuestError{
	Name: "Error", Message: "m", Stack: "s", Code: "ENOENT", Properties: map[string]json.RawMessage{"errno": json.RawMessage("-2")},
	Cause: &runtime.GuestError{Message: "cause"},
}

var denials = []runtime.Denial{{Scope: "fs", Operation: policy.Operation("write"), Target: "/x", Rule: "fs.default", Count: 2, Source: runtime.SourceAudit, Address: "192.0.2.1"}}

var calls = []runtime.Call{{Name: "api.get", Duration: 5 * time.Microsecond, Arguments: 2, Result: 3, Error: "e"}}

func usage() runtime.Usage {
	return runtime.Usage{CPU: 1500 * time.Microsecond, PeakMemory: 5, PeakPids: 6, Network: runtime.NetworkUsage{Connections: 1, BytesOut: 2}}
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
	want := &runtime.Result{
		Stdout: []byte("\xff<&>"), Stderr: []byte("text"), ExitCode: 3, Signal: "SIGKILL", Cause: runtime.CauseMemory, Value: json.RawMessage(`{"a":1}`),
		Error: guestError, Duration: 1234 * time.Microsecond, Queued: 7 * time.Millisecond, Usage: usage(),
		Launcher: runtime.LauncherExec, LauncherReason: "why", Denials: denials, Calls: calls,
	}
	want.Truncated.Stdout, want.Truncated.Calls, want.Truncated.Denials = true, true, true
	if diff := cmp.Diff(want, transfer(t, NewRun(want)).Result()); diff != "" {
		t.Error(diff)
	}
	empty := &runtime.Result{Stdout: []byte{}, Stderr: []byte{}}
	if diff := cmp.Diff(empty, transfer(t, NewRun(empty)).Result()); diff != "" {
		t.Error(diff)
	}
}

func TestEvaluationBack(t *testing.T) {
	framed := *guestError
	framed.Frame = "1 | x"
	want := &runtime.Evaluation{
		Value: json.RawMessage(`[1]`), NoValue: "n", Error: &framed, Logs: []runtime.Log{{Level: runtime.LogWarn, Text: "l", At: 3 * time.Microsecond}},
		Calls: calls, Duration: time.Second, Cause: runtime.CauseTimeout, Usage: usage(), Denials: denials,
	}
	want.Truncated.Logs = true
	if diff := cmp.Diff(want, transfer(t, NewEvaluation(want)).Evaluation()); diff != "" {
		t.Error(diff)
	}
}

// zeroFields returns the names of the fields of a structure, and of those in it, that are zero.
func zeroFields(v reflect.Value) (names []string) {
	for f, value := range v.Fields() {
		if value.IsZero() {
			names = append(names, f.Name)
		} else if value.Kind() == reflect.Struct && f.IsExported() {
			names = append(names, zeroFields(value)...)
		}
	}
	return names
}

func TestEventsBack(t *testing.T) {
	for _, want := range []runtime.Event{
		runtime.LogEvent{Log: runtime.Log{Level: runtime.LogLog, Text: "x", At: time.Millisecond}},
		runtime.CallEvent{Call: calls[0]},
		runtime.DenialEvent{Denial: denials[0]},
		runtime.ConnectEvent{Connection: runtime.Connection{
			Host: "a.example", Address: netip.MustParseAddrPort("192.0.2.1:443"), Port: 443, Rule: "network.rules[0]", BytesIn: 1, BytesOut: 2,
			Duration: time.Second, Outcome: "closed",
		}},
	} {
		if names := zeroFields(reflect.ValueOf(want)); names != nil {
			t.Errorf("%T: the test leaves %v zero", want, names)
		}
		name, data := NewEvent(want)
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Event(name, text)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
	}
	for name, text := range map[string]string{"log": "[]", "nosuch": "{}"} {
		if _, err := Event(name, []byte(text)); err == nil {
			t.Errorf("%s %s is accepted", name, text)
		}
	}
}
