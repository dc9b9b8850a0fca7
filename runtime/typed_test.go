package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

type point struct {
	X    int     `json:"x" jsonschema:"to the right"`
	Y    float64 `json:"y,omitempty"`
	Tags []string
	Icon []byte    `json:"icon,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// fits are functions that tell whether they were called.
func fits() map[string]Function {
	called := errors.New("called")
	return map[string]Function{
		"none":   NewFunction0("", func(context.Context) (int, error) { return 0, called }),
		"int8":   NewFunction("", func(context.Context, int8) (int, error) { return 0, called }),
		"string": NewFunction("", func(context.Context, string) (int, error) { return 0, called }),
		"point":  NewFunction("a point", func(context.Context, point) (int, error) { return 0, called }),
		"map":    NewFunction("", func(context.Context, map[string]int) (int, error) { return 0, called }),
		"both":   NewFunction2("", func(context.Context, bool, []int) (int, error) { return 0, called }),
		"any":    NewFunction("", func(context.Context, any) (int, error) { return 0, called }),
		"raw":    NewFunction("", func(context.Context, json.RawMessage) (int, error) { return 0, called }),
		"*raw":   NewFunction("", func(context.Context, *json.RawMessage) (int, error) { return 0, called }),
		"addr":   NewFunction("", func(context.Context, struct{ List []*netip.Addr }) (int, error) { return 0, called }),
		"number": NewFunction("", func(context.Context, struct{ N json.Number }) (int, error) { return 0, called }),
	}
}

func TestTypedFunctions(t *testing.T) {
	functions := fits()
	for _, tc := range []struct{ function, args, want string }{
		{"none", `[]`, "called"}, {"none", `[null]`, "takes 0"}, {"none", `[1,2,3,4,5]`, "takes 0"},
		{"int8", `[127]`, "called"}, {"int8", `[]`, "takes 1"}, {"int8", `[1,2]`, "takes 1"},
		{"int8", `[128]`, "does not fit"}, {"int8", `[1.5]`, "does not fit"}, {"int8", `["1"]`, "does not fit"},
		{"int8", `[null]`, "null"}, {"int8", `[[]]`, "does not fit"}, {"int8", `[1e400]`, "does not fit"},
		{"string", `["\u0000"]`, "called"}, {"string", `[1]`, "does not fit"}, {"string", `[{}]`, "does not fit"},
		{"point", `[{"x":1,"Tags":["a"]}]`, "called"}, {"point", `[{"x":1,"Tags":[],"icon":"AA==","at":"2020-01-01T00:00:00Z"}]`, "called"},
		{"point", `[{"Tags":[]}]`, "the arguments"}, {"point", `[{"x":1,"Tags":[],"z":1}]`, "unknown field"}, {"point", `[{"X":1,"Tags":[]}]`, "the arguments"},
		{"point", `[{"x":"1","Tags":[]}]`, "x does not fit"}, {"point", `[{"x":null,"Tags":[]}]`, "the arguments"}, {"point", `[[]]`, "does not fit"},
		{"point", `[{"x":1,"Tags":[],"icon":"~"}]`, "the arguments"}, {"point", `[{"x":1,"Tags":[],"at":"yesterday"}]`, "the arguments"}, {"point", `[null]`, "the arguments"},
		{"map", `[{"__proto__":1}]`, "called"}, {"map", `[{"a":"b"}]`, "does not fit"},
		{"both", `[true,[1]]`, "called"}, {"both", `[true]`, "takes 2"}, {"both", `[true,[1],3]`, "takes 2"}, {"both", `[1,[1]]`, "does not fit"}, {"both", `[true,{}]`, "does not fit"},
		{"any", `[[{}]]`, "called"}, {"any", `[null]`, "called"},
		{"raw", `[{"a":1}]`, "called"}, {"raw", `["a"]`, "called"}, {"raw", `[null]`, "called"},
		{"*raw", `[{"a":1}]`, "called"}, {"*raw", `[1]`, "called"}, {"*raw", `[null]`, "called"},
		{"addr", `[{"List":["::1",null]}]`, "called"}, {"addr", `[{"List":[1]}]`, "the arguments"}, {"addr", `[{"List":["x"]}]`, "the arguments"},
		{"number", `[{"N":1.5}]`, "called"}, {"number", `[{"N":"1"}]`, "the arguments"}, {"number", `[{"N":"x"}]`, "the arguments"},
		{"int8", `{}`, "does not fit"}, {"int8", `1`, "does not fit"}, {"int8", `[`, "the arguments"}, {"int8", ``, "the arguments"},
	} {
		_, err := functions[tc.function].Call(t.Context(), json.RawMessage(tc.args))
		coded, _ := errors.AsType[*CallError](err)
		if err == nil || !strings.Contains(err.Error(), tc.want) || (tc.want != "called") != (coded != nil && coded.Code == CodeArguments) {
			t.Errorf("%s%s: %v, want %s", tc.function, tc.args, err, tc.want)
		}
		if strings.Contains(err.Error(), "runtime.") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s%s: the guest is told of the host's types: %v", tc.function, tc.args, err)
		}
	}
}

// Arguments that don't fit cost no more than their text, however many trees are in it.
func TestTypedFunctionsAllocate(t *testing.T) {
	many := "[" + strings.Repeat("{},", 100_000) + "{}]"
	for name, f := range fits() {
		if slices.Contains([]string{"any", "raw", "*raw"}, name) { // have the trees, as they ask for them
			continue
		}
		for _, args := range []string{many, "[" + many + "]", "[" + many + ",1]", `[{"x":` + many + `}]`} {
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			_, err := f.Call(t.Context(), json.RawMessage(args))
			goruntime.ReadMemStats(&after)
			if err == nil || err.Error() == "called" {
				t.Errorf("%s takes %.10s: %v", name, args, err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > uint64(8*len(args)) { // the trees take some 60
				t.Errorf("%s: %d bytes for %d of %.10s", name, got, len(args), args)
			}
		}
	}
}

func TestTypedFunctionPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a channel has a schema")
		}
	}()
	NewFunction("", func(context.Context, chan int) (int, error) { return 0, nil })
}

func TestCallLimitsSettle(t *testing.T) {
	got, err := CallLimits{Calls: 7, Timeout: time.Second}.settle(defaultCalls)
	want := defaultCalls
	want.Calls, want.Timeout = 7, time.Second
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, l := range []CallLimits{{Calls: -1}, {Concurrent: -1}, {Arguments: -1}, {Result: -1}, {Timeout: -1}, {Concurrent: mostPending + 1}, {Arguments: 1<<30 + 1}, {Result: 1<<30 + 1}} {
		if got, err := l.settle(defaultCalls); err == nil {
			t.Errorf("%+v is taken as %+v", l, got)
		}
	}
}
