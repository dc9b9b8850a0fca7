package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// classify accepts functions, maps and data, and refuses errors.
func classify(v any) (Function, map[string]any, error) {
	switch v := v.(type) {
	case func(context.Context, json.RawMessage) (any, error):
		return Function{Call: v}, nil, nil
	case Func:
		return Function{Call: v, Async: true}, nil, nil
	case map[string]any:
		return Function{}, v, nil
	case error:
		return Function{}, nil, v
	}
	return Function{}, nil, nil
}

func TestNewBindings(t *testing.T) {
	f := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	deep := func(n int) map[string]any {
		m := map[string]any{"f": f}
		for range n {
			m = map[string]any{"a": m}
		}
		return m
	}
	many := map[string]any{}
	for i := range maxFunctions + 1 {
		many["f"+strings.Repeat("x", i)] = f
	}
	for _, tc := range []struct {
		name      string
		given     map[string]any
		values    string
		functions string
		err       string
	}{
		{"nothing", nil, "", "", ""},
		{"data", map[string]any{"a": 1, "b": map[string]any{"x-y": nil}}, `{"a":1,"b":{"x-y":null}}`, "", ""},
		{"functions in data", map[string]any{"a": map[string]any{"g": f, "n": 1, "deep": map[string]any{"h": Func(f)}}, "f": Func(f)}, `{"a":{"deep":{},"n":1}}`, "a.deep.h a.g f", ""},
		{"functions alone", map[string]any{"f": f}, "", "f", ""},
		{"letters of any script", map[string]any{"größe_$1": 1}, `{"größe_$1":1}`, "", ""},
		{"a digit first", map[string]any{"1a": 1}, "", "", `"1a" is not a valid`},
		{"__return", map[string]any{"__return": 1}, "", "", "can't be given"},
		{"process", map[string]any{"process": 1}, "", "", `"process" can't be given: programs need Node's own; give it another name`},
		{"console with functions", map[string]any{"console": map[string]any{"log": f}}, "", "", `"console" can't be given`},
		{"a word", map[string]any{"class": f}, "", "", `"class" is a word of JavaScript`},
		{"a word of modules", map[string]any{"await": 1}, "", "", `"await" is a word of JavaScript`},
		{"words in an object", map[string]any{"api": map[string]any{"delete": f, "process": f}, "async": 1}, `{"api":{},"async":1}`, "api.delete api.process", ""},
		{"a bad name beside a function", map[string]any{"a": map[string]any{"b": map[string]any{"f": f}, "x y": f}}, "", "", `"a.x y"`},
		{"no function", map[string]any{"f": errors.New("refused")}, "", "", "refused"},
		{"as deep as allowed", deep(maxDepth - 1), `{"a"`, strings.Repeat("a.", maxDepth-1) + "f", ""},
		{"too deep", deep(maxDepth), "", "", "deeper than"},
		{"too many", many, "", "", "1025 functions"},
		{"too large", map[string]any{"x": strings.Repeat("x", maxValues)}, "", "", "the limit is"},
		{"not a number", map[string]any{"x": math.NaN()}, "", "", "NaN"},
	} {
		g, err := NewBindings(tc.given, classify, RefuseIntegers)
		if tc.err != "" || err != nil {
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.err)
			}
			continue
		}
		var names []string
		for _, f := range g.Functions {
			names = append(names, f.Name())
		}
		var values []byte
		if len(g.values) > 0 {
			if values, err = json.Marshal(g.values); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(string(values), tc.values) || strings.Join(names, " ") != tc.functions {
			t.Errorf("%s: %.200s and %q", tc.name, values, names)
		}
	}
}

// Values are encoded as by encoding/json, except for bytes and times.
func TestEncode(t *testing.T) {
	type inner struct {
		A int           `json:"a,omitempty"`
		B string        `json:",omitempty"`
		C time.Duration `json:"c"`
		D any           `json:"d"`
		E int64         `json:"e,string"`
		f int
	}
	for _, v := range []any{
		nil, true, 1, -1.5, 1e21, "x", "ü\xff\u2028\x00", []int(nil), []int{}, map[string]int(nil), map[int]string{2: "b", 1: "a"},
		inner{}, &inner{A: 1, B: "b", C: time.Second, D: []any{nil}, E: 5, f: 1}, []any{1, "a", nil, map[string]any{"z": 1, "a": 2}},
		json.RawMessage(`{"a":1,"a":2}`), json.Number("1234567890123456.5"), [2]byte{1, 2}, struct{ inner }{inner{A: 2}},
		map[time.Time]int{time.Unix(5, 0).UTC(): 1}, map[json.Number]int{"5": 1},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Encode("x", v, RefuseIntegers)
		if err != nil || !sameJSON(got, want) {
			t.Errorf("%#v: %s, %v, want %s", v, got, err, want)
		}
	}
	at := time.UnixMilli(1234567890123).In(time.FixedZone("", 3600))
	for _, tc := range []struct {
		v    any
		want string
	}{
		{[]byte{0, 255}, `{"\u0000bytes":"AP8="}`},
		{[]byte(nil), `null`},
		{map[string]any{"a": []any{[]byte("x"), at}}, `{"a":[{"\u0000bytes":"eA=="},{"\u0000date":"2009-02-13T23:31:30.123Z"}]}`},
		{struct{ At *time.Time }{&at}, `{"At":{"\u0000date":"2009-02-13T23:31:30.123Z"}}`},
		{time.Date(-5, 2, 3, 4, 5, 6, 0, time.UTC), `{"\u0000date":"-000005-02-03T04:05:06.000Z"}`},
		{time.Date(12345, 2, 3, 4, 5, 6, 0, time.UTC), `{"\u0000date":"+012345-02-03T04:05:06.000Z"}`},
		{"</script>", `"</script>"`},
	} {
		if got, err := Encode("x", tc.v, RefuseIntegers); err != nil || string(got) != tc.want {
			t.Errorf("%#v: %s, %v, want %s", tc.v, got, err, tc.want)
		}
	}
	for _, v := range []any{make(chan int), func() {}, math.Inf(1), map[bool]int{true: 1}, json.RawMessage(`{`), time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got, err := Encode("x", v, RefuseIntegers); err == nil {
			t.Errorf("%#v is %s", v, got)
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, err1 := json.Marshal(x)
	other, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && string(one) == string(other)
}
