package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

func strict(schema string) map[string]any {
	return map[string]any{"f": runtime.Function{
		Strict: true, Schema: json.RawMessage(schema),
		Call: func(context.Context, json.RawMessage) (any, error) { return "called", nil },
	}}
}

// Names of properties are no keywords, and all keywords of JSON Schema are checked.
func TestStrictFunction(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct{ schema, args, want string }{
		{`{"properties": {"pattern": {"type": "string"}, "$ref": {}, "patternProperties": {}}, "required": ["pattern"]}`, `{pattern: "a*", $ref: 1}`, "called"},
		{`{"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}`, `{pattern: 1}`, "ERR_ARGUMENTS"},
		{`{"properties": {"a": {"pattern": "^[a-c]+$"}}}`, `{a: "abc"}`, "called"},
		{`{"properties": {"a": {"pattern": "^[a-c]+$"}}}`, `{a: "abd"}`, "ERR_ARGUMENTS"},
		{`{"$defs": {"s": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/s"}}}`, `{a: 1}`, "ERR_ARGUMENTS"},
	} {
		globals := strict(`{"type": "array", "prefixItems": [{"type": "object", ` + tc.schema[1:] + `]}`)
		if strings.Contains(tc.schema, "$defs") {
			globals = strict(`{"$defs": {"s": {"type": "string"}}, "prefixItems": [{"properties": {"a": {"$ref": "#/$defs/s"}}}]}`)
		}
		e, err := rt.Evaluate(t.Context(), fmt.Sprintf("try { return f(%s) } catch (e) { return e.code }", tc.args), runtime.EvaluateOptions{Globals: globals})
		if err != nil || e.Error != nil {
			t.Fatal(err, e)
		}
		if got := strings.Trim(string(e.Value), `"`); got != tc.want {
			t.Errorf("%s: %s: %s, want %s", tc.schema, tc.args, got, tc.want)
		}
	}
}

func TestInvalidSchema(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, schema := range []string{`{"type": 1}`, `{"$ref": "https://example.com/x"}`, `[]`} {
		_, err := rt.Evaluate(t.Context(), "1", runtime.EvaluateOptions{Globals: strict(schema)})
		if _, ok := errors.AsType[*runtime.OptionError](err); !ok {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// A schema whose check takes long costs its caller an error, and other callers nothing.
func TestSlowSchema(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const schemas, items = 1000, 1000
	slow := `{"prefixItems":[{"items":{"items":{"anyOf":[` + strings.Repeat(`{"minimum":9},`, schemas) + `{}]}}}]}`
	code := fmt.Sprintf("const row = Array(%d).fill(1); try { return f(Array(%d).fill(row)) } catch (e) { return e.code + ': ' + e.message }", items, items/4)
	e, err := rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{Globals: strict(slow)})
	if err != nil || e.Error != nil || !strings.Contains(string(e.Value), "ERR_ARGUMENTS: the arguments: it is too complex") {
		t.Errorf("%v, %.300s", err, e.Value)
	}
}

// Code that takes a compiler years is an error of its author.
func TestComplexCode(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	code := "x=" + strings.Repeat("a?(b):c=>d?", 60) + "1"
	e, err := rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{})
	if err != nil || e.Error == nil || e.Error.Name != "SyntaxError" || !strings.Contains(e.Error.Message, "too complex") {
		t.Errorf("%v, %+v", err, e)
	}
	res, err := rt.Run(t.Context(), code, runtime.RunOptions{Name: "x.ts", Timeout: 1e9})
	if err != nil || res.Cause != runtime.CauseTimeout {
		t.Errorf("%v, %+v", err, res)
	}
}
