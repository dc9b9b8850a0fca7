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
		if s.refusal != "" || len(s.open) != 1 || s.cost.depth != 0 || s.cost.scopes != 0 {
			t.Errorf("%q: %s, %d open, %d deep, %d scopes", tc.code, s.refusal, len(s.open)-1, s.cost.depth, s.cost.scopes)
		}
	}
}

// TestScannerDepth checks that the scanner detects every kind of nesting, however hidden.
func TestScannerDepth(t *testing.T) {
	for _, one := range []string{
		"(", "[", "{", "`${", "!", "- ", "a=>", "a?", "a=", "a**", "if(1)", "if(1);else ", "new ", "await ", "typeof ", "class extends ", "a:",
		"a<b,", "A<B<", "(/*)*/", "(')',", "(`)`,", "(//)\n", "(/)/.a,", "{a:{/})/},b:", "if(1)/)/(", "`${`}`+(", "a\n!\n", "for(;;)for(;;)",
		"(()=>{{}/})/;", "keyof ", "x extends y?", "a?b.default:",
	} {
		code := "let x: any\n" + strings.Repeat(one, 2*maxNesting)
		if s := scan(code, false); s.refusal == "" {
			t.Errorf("%q: a depth of %d only, %d open, %d in debt", one, s.cost.depth, len(s.open), s.uncertain)
		}
	}
	for _, one := range []string{"<a>", "<a>)", "<a b={", "<a b=')'>", "<a>{(", "<a>'{(", "<a>`{(", "<a b=<", "<a b={<c>')</c>}>("} {
		code := "let x: any = \n" + strings.Repeat(one, 2*maxNesting)
		if s := scan(code, true); s.refusal == "" {
			t.Errorf("%q: a depth of %d only, %d open, %d in debt", one, s.cost.depth, len(s.open), s.uncertain)
		}
	}
}

// TestScannerRepetition checks that code which repeats without nesting is accepted.
func TestScannerRepetition(t *testing.T) {
	for _, one := range []string{
		"f(a, b);\n", "f(a)\n", "const x: number = a ? b : -c\n", "if (a) { b() } else { c() }\n", "export function f(a: A<B>): C { return new D(a) }\n",
		"interface A { a?: B<C>; b: [D, E] }\n", "type A = B extends C ? D : E\n", "x.y().z[0] += 1;\n", "case 1:\n", "label: for (;;) break label\n",
		"<a b={c}>d</a>;\n", "`${a}`;\n", "a < b;\n", "@dec() class A { @dec a = 1; get b() { return !this.a } }\n", "x = y / 2\n",
	} {
		for _, jsx := range []bool{false, strings.HasPrefix(one, "<")} {
			if jsx != strings.HasPrefix(one, "<") {
				continue
			}
			if s := scan(strings.Repeat(one, 1500), jsx); s.refusal != "" || s.cost.depth > 5 {
				t.Errorf("%q: %s, a depth of %d, %d open, %d in debt", one, s.refusal, s.cost.depth, len(s.open), s.uncertain)
			}
		}
	}
}

// TestScannerSequences checks that the scanner counts the commas of expressions wherever
// they are, and no others: esbuild's time is quadratic only in those.
func TestScannerSequences(t *testing.T) {
	for open, costly := range map[string]bool{
		"": true, "(": true, "!(": true, "x = (": true, "if (": true, "for (": true, "return ": true, "a => (": true, "`${": true, "x[": true, "({ a: (": true,
		"f(": false, "new F(": false, "a.of(": false, "x = [": false, "x = {": false, "let ": false, "function f(": false,
	} {
		s := scan(open+strings.Repeat("q,", 5000), false)
		if ns := s.cost.ns - scan(open+strings.Repeat("q;", 5000), false).cost.ns; (ns > maxCost) != costly {
			t.Errorf("%q: 5000 commas cost %d ms", open, ns/1e6)
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

// TestScannerNests nests them at random and checks the depth that the scanner finds.
func TestScannerNests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		code := "1"
		for range 60 {
			code = strings.Replace(around[random.IntN(len(around))], "%", code, 1)
		}
		s := scan("let x: any = "+code, true)
		if s.refusal != "" || len(s.open) != 1 || s.uncertain > 60 {
			t.Errorf("%s\n%s, %d open, %d in debt", code, s.refusal, len(s.open), s.uncertain)
		}
		if _, err := (&compiler{}).translate(newDraft("let x: any = "+code), api.LoaderTSX); err != nil {
			t.Fatalf("%s\n%v", code, err)
		}
		for range maxNesting/2 - 59 {
			code = strings.Replace(around[random.IntN(len(around))], "%", code, 1)
		}
		if s := scan("let x: any = "+code, true); s.refusal == "" {
			t.Errorf("%d in debt, and no trouble:\n%s", s.uncertain, code)
		}
	}
}
