package evaluate

import (
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// What models write and strict ES modules do not allow has a value, in evaluations and in cells.
func TestLenientCode(t *testing.T) {
	for _, launcher := range []runtime.Launcher{runtime.LauncherZygote, runtime.LauncherExec} {
		rt := harness.Create(t, runtime.Options{Launcher: launcher})
		c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ code, want string }{
			{`total = 0; for (i = 0; i < 3; i++) total += i; total`, `3`},
			{`with ({ a: 7 }) b = a; b`, `7`},
			{`sum = Promise.resolve(010); sum`, `8`},
			{`size = 5; return (await import('node:path')).sep.length + size`, `6`},
			{`export const answer = 42`, `{"answer":42}`},
			{"const one = 1\nexport { one as first }\nexport function f() {}", `{"first":1}`},
			{`class A { accessor x = 9 }; new A().x`, `9`},
			{"import { type T, sep, Unused } from 'node:path'\nconst unused: Unused = 1\nsep", `"/"`},
			{"\ufeffRun:\n```js\n#!/usr/bin/env node\n10\n```", `10`},
		} {
			got := harness.Evaluate(t, rt, tc.code, runtime.EvaluateOptions{})
			if string(got.Value) != tc.want || got.Error != nil {
				t.Errorf("%s: %q is %s, %v, want %s", launcher, tc.code, got.Value, got.Error, tc.want)
			}
			cell, err := c.Evaluate(t.Context(), tc.code, runtime.EvaluateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if string(cell.Value) != tc.want || cell.Error != nil {
				t.Errorf("%s: the cell %q is %s, %v, want %s", launcher, tc.code, cell.Value, cell.Error, tc.want)
			}
		}
		if err := c.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	}
}
