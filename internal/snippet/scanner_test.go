package snippet

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"
)

// TestScannerBalance checks that the scanner closes every bracket of TypeScript and JSX,
// whatever brackets strings, templates, comments and text contain.
func TestScannerBalance(t *testing.T) {
	for _, tc := range []struct {
		code string
		jsx  bool
	}{
		{"f('(', `[${a[`{${b}`]}`, /[(]{/) // ((\n/* {{ */", false},
		{"a = b / c / d(e) / f", false},
		{"a!/b/(c)", false},
		{"if (a) /(/.test(b)", false},
		{"const f = <T extends A<B>>(x: T): x is T => x", false},
		{"class A<T> { private x?: Map<string, T[]>; f = (a = 1) => ({ a }) }", false},
		{"<a>don't (</a>", true},
		{"<a b='(' c={`(${d}`}>{e ? <i/> : f < g}</a>", true},
		{"x = <><b.c:d/> [ {'['} </>; (y)", true},
		{"const f = <T,>(x: T) => <p>{x}</p>", true},
		{"a < b || c > (d)", true},
		{"function A() { return (<a>'</a>) }\n<A/>", true},
	} {
		s := scan(tc.code, tc.jsx)
		if len(s.open) != 1 {
			t.Errorf("%q: %d open", tc.code, len(s.open)-1)
		}
	}
}

func TestScannerImports(t *testing.T) {
	const code = `import a, { type B } from "a"; import 'b' with { type: 'json' }
import type { C } from 'c'
const d = import('d'), e = import.meta
import f = require('f')
{ import('g') }
import { h }
  from 'h'
f()`
	var got []string
	for _, at := range scan(code, false).imports() {
		got = append(got, oneLine(code[at.start:at.end]))
	}
	want := []string{
		`import a , { type B } from "a"`,
		`import 'b' with { type : 'json' }`,
		`import type { C } from 'c'`,
		`import { h } from 'h'`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// around are expressions with a place for another one in brackets, among text that might
// hide the brackets.
var around = []string{
	"(%)", "[%, 1]", "({ a: % })", "`(${%}`", "f(')', \"(\", %)", "/[)]\\//.test(%)", "(() => { return % })()", "<a b={%} c=')'>it's ) (</a>",
	"(%) / g(1) / 2", "(a ? % : b)", "((c) => %)", "(function () { if (a) /[)]/.test(%) })", "(class { a = % })", "(% as Array<B>)!", "f<A<B>>(%)",
	"( // )\n%)", "(/* ) */ %)", "<>{%} {/* } */}</>", "`${`)`}${%})`", "(a < b, %)", "new (class<T> { b(c?: T) { return [%] } })()", "(async <T,>(x: T) => { for (const y of [%]) ; })",
}

// TestScannerNests nests them at random and checks that the scanner closes every bracket.
func TestScannerNests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		code := "1"
		for range 60 {
			code = strings.Replace(around[random.IntN(len(around))], "%", code, 1)
		}
		s := scan("let x: any = "+code, true)
		if len(s.open) != 1 {
			t.Errorf("%s\n%d open", code, len(s.open))
		}
		if _, err := (&compiler{}).translate(newDraft("let x: any = "+code), api.LoaderTSX, keepsImports); err != nil {
			t.Fatalf("%s\n%v", code, err)
		}
	}
}
