package snippet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLexer(t *testing.T) {
	for _, tc := range []struct {
		code, want string
	}{
		{"a=1;", "a = 1 ;"},
		{"a?.b?.5:c", "a ?. b ? .5 : c"},
		{"1..x 1.5e+3.x 0x1e+2 1_0n.y 5.e1", "1. . x 1.5e+3 . x 0x1e + 2 1_0n . y 5.e1"},
		{"a>>>=b**=c??=d", "a >>>= b **= c ??= d"},
		{"x=>({...y})", "x => ( { ... y } )"},
		{`"a\"b" 'c\` + "\r\n" + `d'`, `"a\"b" 'c\` + "\r\n" + `d'`},
		{"`a${b}c`", "`a${ b }c`"},
		{"#a in b", "#a in b"},
		{"\\u0061b \\u{62}c é中$_", "\\u0061b \\u{62}c é中$_"},
		{"a // b\nc /* d\n */ e", "a |c |e"},
		{"a\u00a0b\u2028c\ufeffd", "a b |c d"},
		{"a@b", "a <@> b"},
		{"'a\nb", "<'a> |b"},
		{"/* a", "</* a>"},
		{"a\\", "a <\\>"},
		{"010 08.5", "010 08.5"},
		{"`\\", "<`\\>"},
	} {
		var got []string
		l := newLexer(tc.code)
		for {
			tok := l.next()
			if tok.kind == atEnd {
				break
			}
			text := tc.code[tok.start:tok.end]
			if tok.kind == notAToken {
				text = "<" + text + ">"
			}
			if tok.newline {
				text = "|" + text
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.code, diff)
		}
	}
}

// kinds are the names of statement kinds in these tests.
var kinds = map[NodeKind]string{
	Empty: "empty", Expression: "expression", Block: "block", Branch: "branching", Function: "function",
	Class: "class", ImportFrom: "import", Export: "export", ExportList: "export", ExportDefault: "default",
}

// outline writes one statement per line, with its results.
func outline(code string, list []*Node) string {
	var b strings.Builder
	for _, s := range list {
		kind := kinds[s.Kind]
		if kind == "" {
			kind = "plain"
		}
		fmt.Fprintf(&b, "%s %s", kind, strings.ReplaceAll(code[s.Start:s.End], "\n", "|"))
		for _, end := range s.results() {
			fmt.Fprintf(&b, " -> %s", strings.ReplaceAll(code[end.Start:end.End], "\n", "|"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestParser(t *testing.T) {
	for _, tc := range []struct {
		code, want string
	}{
		{"a\nb", "expression a -> a\nexpression b -> b\n"},
		{"a\n(b)", "expression a|(b) -> a|(b)\n"},
		{"a\n++b", "expression a -> a\nexpression ++b -> ++b\n"},
		{"a\n/b/g", "expression a|/b/g -> a|/b/g\n"},
		{"a++\n/b/g\n", "expression a++|/b/g -> a++|/b/g\n"},
		{"let a = 1\n/b/\nc", "plain let a = 1|/b/|c\n"},
		{"if (a) /b/.c", "branching if (a) /b/.c -> /b/.c\n"},
		{"{} /b/", "block {}\nexpression /b/ -> /b/\n"},
		{"({} / b / c)", "expression ({} / b / c) -> ({} / b / c)\n"},
		{"x = function () {} / b / c", "expression x = function () {} / b / c -> x = function () {} / b / c\n"},
		{"do a; while (b) c", "plain do a; while (b)\nexpression c -> c\n"},
		{"if (a) b; else if (c) { d; e } else f", "branching if (a) b; else if (c) { d; e } else f -> b -> e -> f\n"},
		{"try { a } catch { b } finally { c }", "branching try { a } catch { b } finally { c } -> a -> b\n"},
		{"switch (a) { case 1: b; break; case c: default: d; let e }", "branching switch (a) { case 1: b; break; case c: default: d; let e } -> b\n"},
		{"a: b: c", "branching a: b: c -> c\n"},
		{"async\nfunction f() {}", "expression async -> async\nfunction function f() {}\n"},
		{"async x => x\nasync(x)", "expression async x => x -> async x => x\nexpression async(x) -> async(x)\n"},
		{"let\nx", "plain let|x\n"},
		{"let in a\nlet[0]", "expression let in a -> let in a\nplain let[0]\n"},
		{"using\nx\nusing y = z", "expression using -> using\nexpression x -> x\nplain using y = z\n"},
		{"await using a = b\nawait using", "plain await using a = b\nexpression await using -> await using\n"},
		{"for (let of = 1; ;) ;\nfor (using of x) ;\nfor (async of => 1; ;) ;", "plain for (let of = 1; ;) ;\nplain for (using of x) ;\nplain for (async of => 1; ;) ;\n"},
		{"for (var a = 'b' in c ? d : e; ;) ;", ""}, // the in would belong to the loop
		{"class A extends b(c) { static d = { e } ; get\nf() {} static { g } async *[h]() {} }", "class class A extends b(c) { static d = { e } ; get|f() {} static { g } async *[h]() {} }\n"},
		{"import a, { b as c, 'd' as e } from 'f' with { type: 'g' }; import.meta; import('h')", "import import a, { b as c, 'd' as e } from 'f' with { type: 'g' };\nexpression import.meta -> import.meta\nexpression import('h') -> import('h')\n"},
		{"import defer * as a from 'b'\nimport source from 'c'\nimport source d from 'e'", "import import defer * as a from 'b'\nimport import source from 'c'\nimport import source d from 'e'\n"},
		{"export { a as b } from 'c'; export * as d from 'e'\nexport const f = 1\nexport default g\nexport default class {} h", "export export { a as b } from 'c';\nexport export * as d from 'e'\nexport export const f = 1\ndefault export default g\ndefault export default class {}\nexpression h -> h\n"},
		{"`a${`b${{ c: `d` }.c}`}e`\nf", "expression `a${`b${{ c: `d` }.c}`}e` -> `a${`b${{ c: `d` }.c}`}e`\nexpression f -> f\n"},
		{"a = b ? c : d => { e }\nf", "expression a = b ? c : d => { e } -> a = b ? c : d => { e }\nexpression f -> f\n"},
		{"new a.b(c)\nnew new d()()\nfunction e() { new.target }", "expression new a.b(c) -> new a.b(c)\nexpression new new d()() -> new new d()()\nfunction function e() { new.target }\n"},
		{"a = /[/]\\/b/v.c / d", "expression a = /[/]\\/b/v.c / d -> a = /[/]\\/b/v.c / d\n"},
		{"x = { async, get: 1, set() {}, async *a() {}, get b() { }, [c]: d, 'e': f, 1: g, ...h, i = j }", "expression x = { async, get: 1, set() {}, async *a() {}, get b() { }, [c]: d, 'e': f, 1: g, ...h, i = j } -> x = { async, get: 1, set() {}, async *a() {}, get b() { }, [c]: d, 'e': f, 1: g, ...h, i = j }\n"},
		{"a b", ""},
		{"(", ""},
		{"a = ", ""},
		{"let x: number", ""},
		{"enum A {}", ""},
		{"x = <a/>", ""},
		{"a <!-- b", ""},
		{"@a class B {}", ""},
		{"}", ""},
	} {
		r := parse(tc.code, maxNesting)
		got := outline(tc.code, r.root.Kids)
		if r.failed {
			got = ""
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.code, diff)
		}
	}
}

func TestParserFields(t *testing.T) {
	for _, tc := range []struct {
		name, code string
		holds      func(*parser, []*Node) bool
	}{
		{"a return", "if (a) { return }", func(r *parser, _ []*Node) bool { return r.topReturn }},
		{"a function's return", "() => { return }", func(r *parser, _ []*Node) bool { return !r.topReturn }},
		{"a method's return", "class A { a() { return } static { } b = () => { return } }", func(r *parser, _ []*Node) bool { return !r.topReturn }},
		{"Markdown", "a\n  ```b``` ", func(r *parser, _ []*Node) bool { return r.fenced }},
		{"a template in a template", "`\n${'```'}`", func(r *parser, _ []*Node) bool { return !r.fenced }},
		{"imports at run time", "() => { import('a'); import.meta.b }", func(r *parser, _ []*Node) bool { return r.isModule }},
		{"an arrow function", "(async () => { a })", func(_ *parser, l []*Node) bool { return l[0].callable() && len(l[0].Kids[0].Value().Kids) == 1 }},
		{"a call", "(() => a)()", func(_ *parser, l []*Node) bool { return !l[0].callable() }},
		{"two functions", "() => a, () => b", func(_ *parser, l []*Node) bool { return !l[0].callable() }},
		{"an argument", "a(() => b)", func(_ *parser, l []*Node) bool { return !l[0].callable() }},
		{"names", "import a from 'b'; let [c, { d: e }] = f; function g(h) { let i }", func(r *parser, _ []*Node) bool {
			return cmp.Equal(slices.Sorted(maps.Keys(r.root.Scope.names)), []string{"a", "c", "e", "g"})
		}},
		{"an import declared again", "import a from 'b'; let a", func(r *parser, _ []*Node) bool { return r.root.Scope.rebinds() }},
		{"a hidden import", "import a from 'b'; { let a } (a) => a; var c; var c", func(r *parser, _ []*Node) bool { return !r.root.Scope.rebinds() }},
	} {
		r := parse(tc.code, maxNesting)
		if r.failed || !tc.holds(r, r.root.Kids) {
			t.Errorf("%s: %q: failed %v, %+v", tc.name, tc.code, r.failed, r.root.Kids)
		}
	}
}
