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

	"gaol/runtime/internal/hostcall"
)

type point struct {
	X    int     `json:"x" jsonschema:"to the right"`
	Y    float64 `json:"y,omitempty"`
	Tags []string
	Icon []byte    `json:"icon,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// fits are functions that record whether they were called.
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
		{"none", `[]`, "called"}, {"none", `[null]`, "too many arguments, want 0"}, {"none", `[1,2,3,4,5]`, "too many arguments, want 0"},
		{"int8", `[127]`, "called"}, {"int8", `[]`, "too few arguments, want 1"}, {"int8", `[1,2]`, "too many arguments, want 1"},
		{"int8", `[128]`, "argument 1: the number is out of range"}, {"int8", `[1.5]`, "argument 1: want a whole number"},
		{"int8", `["1"]`, "argument 1: want a whole number"}, {"int8", `[null]`, "argument 1: want integer, got null"},
		{"int8", `[[]]`, "want a whole number"}, {"int8", `[1e400]`, "want a whole number"},
		{"string", `["\u0000"]`, "called"}, {"string", `[1]`, "argument 1: want a string"}, {"string", `[{}]`, "argument 1: want a string"},
		{"point", `[{"x":1,"Tags":["a"]}]`, "called"}, {"point", `[{"x":1,"Tags":[],"icon":"AA==","at":"2020-01-01T00:00:00Z"}]`, "called"},
		{"point", `[{"Tags":[]}]`, `argument 1: required: missing properties: ["x"]`}, {"point", `[{"x":1,"Tags":[],"z":1}]`, "argument 1: z: unknown field"}, {"point", `[{"X":1,"Tags":[]}]`, "argument 1: X: unknown field"},
		{"point", `[{"x":"1","Tags":[]}]`, "argument 1: x: want a whole number"}, {"point", `[{"x":null,"Tags":[]}]`, `argument 1: validating /properties/x: type: null has type "null", want "integer"`}, {"point", `[[]]`, "argument 1: want an object"},
		{"point", `[{"x":1,"Tags":[],"icon":"~"}]`, "argument 1: icon: illegal base64 data"}, {"point", `[{"x":1,"Tags":[],"icon":1}]`, "argument 1: icon: want a string"},
		{"point", `[{"x":1,"Tags":[],"at":"yesterday"}]`, `argument 1: at: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00"`}, {"point", `[null]`, `argument 1: type: null has type "null", want "object"`},
		{"map", `[{"__proto__":1}]`, "called"}, {"map", `[{"a":"b"}]`, "argument 1: a: want a whole number"}, {"map", `[{"a":null}]`, `argument 1: validating /additionalProperties: type: null has type "null", want "integer"`},
		{"both", `[true,[1]]`, "called"}, {"both", `[true]`, "too few arguments, want 2"}, {"both", `[true,[1],3]`, "too many arguments, want 2"},
		{"both", `[1,[1]]`, "argument 1: want true or false"}, {"both", `[true,{}]`, "argument 2: want an array"}, {"both", `[true,[null]]`, `argument 2: validating /items: type: null has type "null", want "integer"`},
		{"any", `[[{}]]`, "called"}, {"any", `[null]`, "called"},
		{"raw", `[{"a":1}]`, "called"}, {"raw", `["a"]`, "called"}, {"raw", `[null]`, "called"},
		{"*raw", `[{"a":1}]`, "called"}, {"*raw", `[1]`, "called"}, {"*raw", `[null]`, "called"},
		{"addr", `[{"List":["::1",null]}]`, "called"}, {"addr", `[{"List":[1]}]`, "argument 1: List[0]: want a string"}, {"addr", `[{"List":["x"]}]`, "argument 1: "},
		{"number", `[{"N":1.5}]`, "called"}, {"number", `[{"N":"1"}]`, `argument 1: validating /properties/N: type: 1 has type "string", want "number"`}, {"number", `[{"N":"x"}]`, "argument 1"},
		{"int8", `{}`, "want array"}, {"int8", `1`, "want array"}, {"int8", `[`, "want array"}, {"int8", ``, "want array"},
	} {
		_, err := functions[tc.function].Call(t.Context(), json.RawMessage(tc.args))
		coded, _ := errors.AsType[*CallError](err)
		if err == nil || !strings.Contains(err.Error(), tc.want) || (tc.want != "called") != (coded != nil && coded.Code == CodeArguments) {
			t.Errorf("%s%s: %v, want %s", tc.function, tc.args, err, tc.want)
		}
		if strings.Contains(err.Error(), "runtime.") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s%s: the error exposes Go types to the guest: %v", tc.function, tc.args, err)
		}
	}
}

// Mismatched arguments use memory proportional to their text, however deeply nested they are.
func TestTypedFunctionsAllocate(t *testing.T) {
	many := "[" + strings.Repeat("{},", 100_000) + "{}]"
	for name, f := range fits() {
		if slices.Contains([]string{"any", "raw", "*raw"}, name) { // these types need the decoded tree
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
			if got := after.TotalAlloc - before.TotalAlloc; got > uint64(8*len(args)) { // decoded trees take about 60 times the text
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
	got := CallLimits{Calls: 7, Timeout: time.Second}
	err := fill(&got, true)
	if want := (CallLimits{Calls: 7, Concurrent: 16, Arguments: 1 << 20, Result: 4 << 20, Timeout: time.Second}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, l := range []CallLimits{{Calls: -1}, {Concurrent: -1}, {Arguments: -1}, {Result: -1}, {Timeout: -1}, {Concurrent: hostcall.MaxPending + 1}, {Arguments: 1<<30 + 1}, {Result: 1<<30 + 1}} {
		if err := fill(&l, true); err == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
}
