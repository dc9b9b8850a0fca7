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

var denials = []runtime.Denial{{Scope: "fs", Operation: policy.Operation("write"), Target: "/x", Rule: "fs.default", Count: 2, Source: runtime.SourceAudit, Address: "192.0.2.1"}}

var calls = []runtime.Call{{Name: "api.get", Duration: 5 * time.Microsecond, Arguments: 2, Result: 3, Error: "e"}}

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
