package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// values are the rows of docs/evaluation.md: an expression, and its JSON or the end of its
// error.
var values = []struct{ code, json, refused string }{
	{code: `[null, true, 'ü', 1.5]`, json: `[null,true,"ü",1.5]`},
	{code: `({ a: undefined, b: [undefined, , 1] })`, json: `{"b":[null,null,1]}`},
	{code: `[NaN, Infinity, -0]`, json: `[null,null,0]`},
	{code: `new Date(0)`, json: `"1970-01-01T00:00:00.000Z"`},
	{code: `[new Date(NaN)]`, json: `[null]`},
	{code: `new Map([['a', 1], ['__proto__', new Map()]])`, json: `{"a":1,"__proto__":{}}`},
	{code: `new Map([[1, 'a'], ['b', 2]])`, json: `[[1,"a"],["b",2]]`},
	{code: `new Set([1, new Set()])`, json: `[1,[]]`},
	{code: `[Buffer.from('x'), new Uint8Array([1, 2]), new Uint8ClampedArray([3]), new Uint16Array([1]).buffer, new DataView(new ArrayBuffer(2), 1)]`, json: `["eA==","AQI=","Aw==","AQA=","AA=="]`},
	{code: `[new Float64Array([1.5, NaN]), new Int8Array([-1])]`, json: `[[1.5,null],[-1]]`},
	{code: `/x/g`, json: `"/x/g"`},
	{code: `new URL('http://localhost/')`, json: `"http://localhost/"`},
	{code: `Object.assign(new TypeError('no', { cause: new Error('why') }), { code: 'E' })`, json: `{"name":"TypeError","message":"no","code":"E","cause":{"name":"Error","message":"why"}}`},
	{code: `[new String('x'), new Number(1), new Boolean(false)]`, json: `["x",1,false]`},
	{code: `new (class A { #b = 1; c = 2; get d() { return 3 } })`, json: `{"c":2}`},
	{code: `({ toJSON: () => new Map([['a', 1]]) })`, json: `{"a":1}`},
	{code: `({ f() {}, [Symbol()]: 1, a: [() => 1, Symbol()] })`, json: `{"a":[null,null]}`},
	{code: `[{}, [], Object.create(null), new Map(), new Set()]`, json: `[{},[],{},{},[]]`},
	{code: `({ items: [0, 1, 2, 1n] })`, refused: `.items[3]: a BigInt cannot be encoded as JSON; make it a string or a number`},
	{code: `[new BigInt64Array(1)]`, refused: `[0]: a BigInt cannot be encoded as JSON; make it a string or a number`},
	{code: `(() => { const f = () => 1; return { toJSON: () => f } })()`, refused: `: a function cannot be encoded as JSON`},
	{code: `Symbol()`, refused: `: a symbol cannot be encoded as JSON`},
	{code: `({ a: { f() {}, [Symbol()]: 1 } })`, refused: `.a: an object of functions alone cannot be encoded as JSON`},
	{code: `(() => { const a = { 'b c': [] }; a['b c'].push(a['b c']); return a })()`, refused: `["b c"][0]: it is ROOT["b c"] again: cycles cannot be encoded as JSON`},
	{code: `(() => { const m = new Map(); m.set('self', new Set([m])); return m })()`, refused: `.self[0]: it is ROOT again: cycles cannot be encoded as JSON`},
	{code: `[Promise.resolve(1)]`, refused: `[0]: a Promise cannot be encoded as JSON; await it`},
	{code: `({ h: new Headers({ a: 'b' }) })`, refused: `.h: a Headers cannot be encoded as JSON: it lacks own enumerable properties`},
	{code: `[].values()`, refused: `: an Array Iterator cannot be encoded as JSON: it lacks own enumerable properties`},
}

// Values are converted in the same way for __return, for snippets and for arguments of
// calls.
func TestValues(t *testing.T) {
	echo := func(_ context.Context, args json.RawMessage) (any, error) {
		return strings.TrimSuffix(strings.TrimPrefix(string(args), "["), "]"), nil
	}
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{"echo": echo}})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range harness.Some(values) {
		wants := func(way, root, got, failed string) {
			t.Helper()
			refused := ""
			if tc.refused != "" {
				refused = root + strings.ReplaceAll(tc.refused, "ROOT", root)
			}
			if got != tc.json || !strings.HasSuffix(failed, refused) || failed != "" && refused == "" {
				t.Errorf("%s %s: %s, %q; want %s, %q", way, tc.code, got, failed, tc.json, refused)
			}
		}
		res := harness.Run(t, rt, "__return("+tc.code+")", runtime.RunOptions{})
		failed := ""
		if res.Error != nil {
			failed = res.Error.Message
		}
		wants("__return", "value", string(res.Value), failed)

		e := harness.Evaluate(t, rt, "return "+tc.code, runtime.EvaluateOptions{})
		failed = ""
		if e.Error != nil {
			failed = e.Error.Message
		}
		wants("return", "value", string(e.Value), failed)

		e = harness.Evaluate(t, rt, "let n = 1\nn && "+tc.code, runtime.EvaluateOptions{})
		wants("a last expression", "value", string(e.Value), e.NoValue)
		if e.Error != nil {
			t.Errorf("a last expression %s: %v", tc.code, e.Error)
		}

		if e, err = c.Evaluate(t.Context(), "1 && "+tc.code, runtime.EvaluateOptions{}); err != nil || e.Error != nil {
			t.Errorf("a cell %s: %+v, %v", tc.code, e, err)
		}
		wants("a cell's", "value", string(e.Value), e.NoValue)

		for _, call := range []string{"echo(" + tc.code + ")", "await echo.async(" + tc.code + ")"} {
			res = harness.Run(t, rt, "try { __return("+call+") } catch (err) { console.log(err.message) }", runtime.RunOptions{})
			got := ""
			if err := json.Unmarshal(res.Value, &got); res.Value != nil && err != nil {
				t.Error(err)
			}
			wants(call, "argument 1", got, strings.TrimSuffix(string(res.Stdout), "\n"))
		}
	}
}

// docs/evaluation.md lists exactly the values that are tested here, with the same results.
func TestValuesDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/evaluation.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`|]+)` \\| (?:`([^`|]+)`|error: `([^`|]+)`) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	rt := harness.Create(t, runtime.Options{})
	for _, row := range rows {
		e := harness.Evaluate(t, rt, "return "+row[1], runtime.EvaluateOptions{})
		failed := ""
		if e.Error != nil {
			failed = e.Error.Message
		}
		if string(e.Value) != row[2] || failed != row[3] {
			t.Errorf("%s: %s, %q; the page says %s, %q", row[1], e.Value, failed, row[2], row[3])
		}
	}
}

// A last expression without JSON is not an error, unless the code declares it as the value.
func TestEvaluateNoResult(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for code, why := range map[string]string{
		"console.log('start');setTimeout(() => console.log('later'), 10)": "cycles cannot be encoded as JSON",
		"const t = 1;require('node:net').createServer()":                  "no data",
		"process.stdin.on('error', () => {})":                             "no data",
		"if (1) { 2n ** 70n }":                                            "value: a BigInt cannot be encoded as JSON",
	} {
		code = strings.ReplaceAll(code, "require('node:net')", "(await import('node:net'))")
		for _, evaluate := range []func(context.Context, string, runtime.EvaluateOptions) (*runtime.Evaluation, error){rt.Evaluate, c.Evaluate} {
			e, err := evaluate(t.Context(), code, runtime.EvaluateOptions{})
			if err != nil || e.Error != nil || e.Value != nil || !strings.Contains(e.NoValue, why) {
				t.Errorf("%s: %+v, %v", code, e, err)
				continue
			}
			if err := e.Decode(new(any)); !errors.Is(err, runtime.ErrNoValue) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", code, err)
			}
			if e, err = evaluate(t.Context(), "if (0) return 1\n"+code+"; return 1n", runtime.EvaluateOptions{}); err != nil || e.Error == nil || e.NoValue != "" {
				t.Errorf("returned: %+v, %v", e, err)
			}
		}
	}
	for _, code := range []string{"return 1n", "export default 1n", "() => 1n", "function f() { return 1n }"} {
		e := harness.Evaluate(t, rt, code, runtime.EvaluateOptions{})
		if e.Error == nil || e.Error.Message != "value: a BigInt cannot be encoded as JSON; make it a string or a number" || e.NoValue != "" {
			t.Errorf("%s: %+v, %q", code, e.Error, e.NoValue)
		}
	}
}
