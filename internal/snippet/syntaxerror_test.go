package snippet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// wrongShapes are not valid programs.
var wrongShapes = []struct {
	code         string
	line, column int
	message      string
}{
	{"const x =", 1, 10, "Unexpected end of file"},
	{"foo(", 1, 5, "Unexpected end of file"},
	{"> 1 + 1", 1, 1, `Unexpected ">"`},
	{"const a = 1;\nconst a = 2;", 2, 7, `The symbol "a" has already been declared`},
	{"1 +\n\n  ) 2", 3, 3, `Unexpected ")"`},
	{"```js\nconst x = ;\n```", 2, 11, `Unexpected ";"`},
	{"Text\n\n  ```ts\n  const x: number = ;\n  ```", 4, 21, `Unexpected ";"`},
	{"```python\nprint(1)\n```", 2, 1, "the Markdown has code blocks of python, but none of JavaScript, TypeScript or JSX"},
	{"Please run this.", 1, 8, `Expected ";" but found "run"`},
	{"Please run this:\n\n```js\n1 +\n```", 5, 1, "Unexpected end of file"},
	{"const x: number = 1\nconst y: = 2", 2, 10, `Unexpected "="`},
	{"````js\n<a>b\n```js\n1\n```\n</a>\n````", 3, 1, markdownInCode},
	{"<b>```js\n1\n```</b>", 3, 1, markdownInCode},
	{"<think>a</think>\n```js\n1 +\n```", 4, 1, "Unexpected end of file"},
	{"return 1\n)", 2, 1, `Unexpected ")"`},
	{"with (a) b\nexport {}", 1, 1, "With statements cannot be used in an ECMAScript module"},
	{"<a></b>", 1, 6, `Unexpected closing "b" tag does not match opening "a" tag`},
	{"import { a } from 'b'\nconst a = 1", 2, 7, `The symbol "a" has already been declared`},
	{"'a' + '😀' + )", 1, 14, `Unexpected ")"`},
	{"a\xff", 1, 2, "the code is not UTF-8"},
	{"'\ufffd' \xff", 1, 5, "the code is not UTF-8"},
	{"'abc", 1, 5, "Unterminated string literal"},
	{"`abc", 1, 5, "Unterminated string literal"},
	{"{ a: 1, b: }", 1, 12, `Unexpected "}"`},
	{"class A { constructor(private x) { }", 1, 37, "Expected identifier but found end of file"},
}

func TestSyntaxError(t *testing.T) {
	for _, tc := range wrongShapes {
		_, err := Module(tc.code)
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok {
			t.Errorf("%q: %v, want a SyntaxError", tc.code, err)
			continue
		}
		if e.Line != tc.line || e.Column != tc.column || e.Message != tc.message {
			t.Errorf("%q: %v, want %d:%d: %s", tc.code, e, tc.line, tc.column, tc.message)
		}
	}
}

func TestErrorFrame(t *testing.T) {
	_, err := Module("const a = 1\nconst b = )\na")
	e, ok := errors.AsType[*SyntaxError](err)
	if !ok {
		t.Fatal(err)
	}
	want := "  1 | const a = 1\n> 2 | const b = )\n    |           ^\n  3 | a\n"
	if e.Error() != `2:11: Unexpected ")"` || e.Frame() != want {
		t.Errorf("%v\n%s\nwant\n%s", e, e.Frame(), want)
	}
}

func TestLimits(t *testing.T) {
	many := "```js\n1\n```\n"
	typed := "let x: number = 1;\n"
	deep := func(open, shut string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n)
	}
	for _, tc := range []struct {
		name, code, message string
	}{
		{"as much as may be", "1" + strings.Repeat(" ", MaxCode-1), ""},
		{"too much", "1" + strings.Repeat(" ", MaxCode), fmt.Sprintf("the code has %d bytes, the limit is %d", MaxCode+1, MaxCode)},
		{"as much TypeScript as may be", typed + strings.Repeat(" ", MaxCode-len(typed)), ""},
		{"as many blocks as may be", strings.Repeat(many, maxBlocks), ""},
		{"too many blocks", strings.Repeat(many, maxBlocks+1), "there are 65 blocks of code, the limit is 64"},
		{"as deep as may be", deep("[", "]", maxNesting/2), ""},
		{"too deep", deep("[", "]", maxNesting), nestedTooDeeply},
		{"too deep, to the right", deep("a=", "", maxNesting), nestedTooDeeply},
		{"too deep, of statements", deep("if(a)", "", maxNesting), nestedTooDeeply},
		{"deep, after types", typed + deep("[", "]", maxNesting/2-1), ""},
		{"a long chain", "[]" + strings.Repeat(".a", maxMembers-1), ""},
		{"too long a chain", "[]" + strings.Repeat(".a", maxMembers+2), nestedTooDeeply},
		{"a long sum", "1" + strings.Repeat("+1", MaxCode/4), ""},
		{"many elements", "[" + strings.Repeat("1,", MaxCode/4) + "]", ""},
		{"repetitive JavaScript", strings.Repeat("a;", MaxCode/2), ""},
		{"a slash of two kinds", typed + "{}\n/`/.b /c", ""},
	} {
		_, err := Module(tc.code)
		got := ""
		if e, ok := errors.AsType[*SyntaxError](err); ok {
			got = e.Message
		}
		if got != tc.message {
			t.Errorf("%s: %.200q, want %q", tc.name, got, tc.message)
		}
	}
}
