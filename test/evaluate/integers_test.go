package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// exact are values of the host that JavaScript's numbers hold, with a program's output.
var exact = map[string]any{
	"9007199254740991": int64(1<<53 - 1), "-9007199254740992": int64(-1 << 53), "100000000000000000000": 1e20, "1152921504606847000": float64(1 << 60), "1e+21": 1e21,
	"18446744000000000000": float32(1 << 64), "0.1": json.Number("0.1000000000000000055511151231257827"), "12345678901234567000": json.RawMessage(`12345678901234567000`),
}

// inexact are values of the host with an integer that JavaScript's numbers do not hold.
var inexact = map[string]any{
	"9007199254740993": int64(1<<53 + 1), "-9223372036854775808": int64(math.MinInt64), "18446744073709551615": uint64(math.MaxUint64), "12345678901234567890": json.Number("12345678901234567890"),
	"1152921504606846976": int64(1 << 60), "99999999999999999999999999": new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(26), nil), big.NewInt(1)),
	"9007199254740995": json.RawMessage(`9007199254740995`),
}

func inside(v any) any {
	return map[string]any{"a b": []any{"12345678901234567890", map[string]any{"id": v, "12345678901234567890": 1}}}
}

const path = `["a b"][1].id`

// Integers of the host are exact, or an error that names their path.
func TestLargeIntegers(t *testing.T) {
	value := any(nil)
	get := runtime.Function{Call: func(context.Context, json.RawMessage) (any, error) { return value, nil }}
	for _, bigInts := range []bool{false, true} {
		rt := harness.Create(t, runtime.Options{BigInts: bigInts, Bindings: map[string]any{"get": get}})
		c := newContext(t, rt, runtime.ContextOptions{})
		for _, set := range []map[string]any{exact, inexact} {
			_, isExact := set["0.1"]
			for digits, v := range set {
				value = inside(v)
				kind, refused := "number", !isExact && !bigInts
				if !isExact {
					kind = "bigint"
				}
				want := fmt.Sprintf(`["%s","%s","12345678901234567890"]`, digits, kind)
				for name, evaluate := range map[string]func() (*runtime.Evaluation, error){
					"global": func() (*runtime.Evaluation, error) {
						return rt.Evaluate(t.Context(), described("given"), runtime.EvaluateOptions{Globals: map[string]any{"given": value}})
					},
					"global of a cell": func() (*runtime.Evaluation, error) {
						return c.Evaluate(t.Context(), described("given"), runtime.EvaluateOptions{Globals: map[string]any{"given": value}})
					},
					"result": func() (*runtime.Evaluation, error) {
						return rt.Evaluate(t.Context(), described("get()"), runtime.EvaluateOptions{})
					},
					"later result": func() (*runtime.Evaluation, error) {
						return c.Evaluate(t.Context(), described("await get.async()"), runtime.EvaluateOptions{})
					},
				} {
					e, err := evaluate()
					if err == nil && e.Error != nil {
						err = e.Error
					}
					if refused {
						if err == nil || !strings.Contains(err.Error(), path+": a JavaScript number cannot hold the integer "+digits) {
							t.Errorf("%s: %s: %v", name, digits, err)
						}
					} else if err != nil || string(e.Value) != want {
						t.Errorf("%s, BigInts %v: %v, want %s", name, bigInts, err, want)
					}
				}
			}
		}
	}
}

func described(value string) string {
	return "const read = (list) => [String(list[1].id), typeof list[1].id, list[0]]; read((" + value + ")['a b'])"
}

// BigInts of programs are an error, or exact integers for the host.
func TestBigIntsOfPrograms(t *testing.T) {
	var got string
	put := runtime.Function{Call: func(_ context.Context, args json.RawMessage) (any, error) { got = string(args); return nil, nil }}
	typed := runtime.NewFunction("", func(_ context.Context, n int64) (int64, error) { return n - 1, nil })
	code := `[2n ** 64n, [{ n: -5n }], new BigInt64Array([1n, -(2n ** 63n)]), Object(7n), new Map([["m", 10n ** 30n]])]`
	want := `[18446744073709551616,[{"n":-5}],[1,-9223372036854775808],7,{"m":1000000000000000000000000000000}]`
	hostile := `BigInt.prototype.toString = () => '"x"'; BigInt.prototype.toJSON = undefined; JSON.rawJSON = () => 1; `
	for _, launcher := range harness.SomeLaunchers() {
		rt := harness.Create(t, runtime.Options{BigInts: true, Launcher: launcher, Bindings: map[string]any{"put": put, "typed": typed}})
		e, err := rt.Evaluate(t.Context(), hostile+code, runtime.EvaluateOptions{})
		if err != nil || string(e.Value) != want {
			t.Errorf("%s %s, %v, %v; want %s", e.Value, e.NoValue, e.Error, err, want)
		}
		res, err := rt.Run(t.Context(), hostile+"put("+code+", 1n); __return("+code+")", runtime.RunOptions{})
		if err != nil || string(res.Value) != want || got != "["+want+",1]" {
			t.Errorf("%s and %s, %v, %v; want %s", res.Value, got, res.Error, err, want)
		}
		if e, err = rt.Evaluate(t.Context(), "typed(9223372036854775807n) === 9223372036854775806n", runtime.EvaluateOptions{}); err != nil || string(e.Value) != "true" {
			t.Errorf("%s, %v, %v", e.Value, e.Error, err)
		}
		c := newContext(t, rt, runtime.ContextOptions{})
		if e := cell(t, c, "0n, "+code, runtime.EvaluateOptions{}); string(e.Value) != want {
			t.Errorf("%s %s, %v; want %s", e.Value, e.NoValue, e.Error, want)
		}
	}
	e, err := harness.Create(t, runtime.Options{}).Evaluate(t.Context(), `({ a: [1n] })`, runtime.EvaluateOptions{})
	if err != nil || !strings.HasPrefix(e.NoValue, "value.a[0]: a BigInt cannot be encoded as JSON") {
		t.Errorf("%q, %v", e.NoValue, err)
	}
}
