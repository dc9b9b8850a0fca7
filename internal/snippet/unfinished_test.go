package snippet

import (
	"strings"
	"testing"
)

func TestUnfinished(t *testing.T) {
	for want, list := range map[bool][]string{
		true: {
			"function f() {", "`abc", "`a${b", "`a\nb", "f(`a", "[1,", "foo(", "foo(1,\n2", "/* abc", "a +", "if (x)", "if (x) {", "({ a: 1",
			"{ a: 1,", "class A {", "class A { b() {", "const x =", "const", "let {a", "await", "import { a", "import x from", "() =>", "x.",
			"for (", "while (1", "do {", "switch (a) { case 1:", "try {", "try { }", "a ? b :", "new", "export default", "const a: number =",
			"interface A {", "function f(a: number) {", "<div>", "x => {\n", "if (a) b; else",
		},
		false: {
			"", "1", "a +\n1", "'abc", "\"abc", "'abc\n", "const b = = 2;", "foo)", "}", "// comment", "`a`", "/* a */", "x = 'a' +* 2",
			"function f() {}", "let a = `x${1}`", "async", "return 1", "f(`a`]",
		},
	} {
		for _, code := range list {
			if got := Unfinished(code); got != want {
				t.Errorf("%q: %v", code, got)
			}
		}
	}
}

// Long code can be unfinished too.
func TestUnfinishedLong(t *testing.T) {
	rows := strings.Repeat("  [1, 'a'],\n", MaxCode/64)
	for want, list := range map[bool][]string{
		true:  {"const a = [\n" + rows, "f(`" + rows, "const a: any = [" + rows, "f(`${a}" + rows, "[" + rows + "/*", "[" + rows + "0] +"},
		false: {"[" + rows + "'a", "[" + rows + "]", "[" + rows + "0)", "[" + rows + "]\n}", "[" + rows + "/a", "{ \"a\": [" + rows + "] }"},
	} {
		for _, code := range list {
			if got := Unfinished(code); got != want {
				t.Errorf("%.20q … %q: %v", code, code[len(code)-10:], got)
			}
		}
	}
}
