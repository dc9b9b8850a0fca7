package snippet

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// thrown are snippets that throw at the mark.
var thrown = []string{
	"«boom()",
	"  «boom() + 1",
	"await Promise.reject(«new Error('x'))",
	"null.«x",
	"const a = 1\n\n  throw «new Error('x')",
	"'\U0001F600' + null.«x",
	"'\U0001F600' +\r\nnull.«x",
	"1\u2028; null.«x",
	"{ a: 1, b: null.«x }",
	"const a = 1;\n{ a, b: null.«x }",
	"async () => {\n  null.«x\n}",
	"async function main() { await 1; null.«x }",
	"export default async function () { await 1; null.«x }",
	"export default null.«x",
	"import { sep } from 'node:path'\nif (!sep) return 1\nawait 1\nnull.«x",
	"if (true) { «boom() } else 2",
	"#!/usr/bin/env node\nnull.«x",
	"interface A { a: number }\n\nconst f = (x: number): number => {\n  if (x > 1) throw «new Error('x')\n  return x\n}\nf(2)",
	"enum A { B = 2 }\nclass C<T> { constructor(private x: T) {}\n  get(): T { return this.x.y.«z } }\nnew C(1).get()",
	"const x: number = 1\nif (!x) return 1\n  return null!.«x",
	"const a = <a b={null.«x}>Don't</a>\na",
	"Some words.\n\n```ts\nconst a: string = 'a'\n  throw «new Error(a)\n```\nand more",
	"  ```js\n  const a = 1\n  null.«x\n  ```",
	"```js\nconst a = 1\n```\n\n```js\na; null.«x\n```",
	"~~~tsx\nfunction App({ n }: { n: any }) {\n  return <b>{n.y.«z}</b>\n}\nApp({ n: 1 })\n~~~",
	"```js\r\nconst a = 1\r\nnull.«x\r\n```",
}

// unmark removes the mark, and returns its position.
func unmark(code string) (string, int, int) {
	at := strings.Index(code, "«")
	line, column := PositionOf(code, at)
	return strings.Replace(code, "«", "", 1), line, column
}

// topFrame matches the first position in a stack that is in the program.
var topFrame = regexp.MustCompile(`(?:\d{3}\.mjs|<anonymous>):(\d+):(\d+)`)

func checkThrown(t *testing.T, i int, p *Program, got outcome) {
	t.Helper()
	code, line, column := unmark(thrown[i])
	m := topFrame.FindStringSubmatch(got.Error + got.Stack)
	if m == nil {
		t.Errorf("%q threw %s at no place of\n%s", code, got.Error, p.Code())
		return
	}
	atLine, _ := strconv.Atoi(m[1])
	atColumn, _ := strconv.Atoi(m[2])
	if l, c, ok := p.Position(atLine, atColumn); l != line || c != column || !ok {
		t.Errorf("%q threw at %d:%d of\n%s\nwhich maps to %d:%d, %v; want %d:%d", code, atLine, atColumn, p.Code(), l, c, ok, line, column)
	}
}

func TestModulePosition(t *testing.T) {
	var programs []*Program
	for _, marked := range thrown {
		code, _, _ := unmark(marked)
		p, err := Module(code)
		if err != nil {
			t.Fatalf("%q: %v", code, err)
		}
		programs = append(programs, p)
	}
	for i, got := range runModules(t, programs) {
		checkThrown(t, i, programs[i], got)
	}
}

func TestCellPosition(t *testing.T) {
	var notebooks [][]*Program
	var which []int
	for i, marked := range thrown {
		if strings.Contains(marked, "function main") {
			continue // a cell only declares it
		}
		code, _, _ := unmark(marked)
		p, err := Cell(code, nil)
		if err != nil {
			t.Fatalf("%q: %v", code, err)
		}
		notebooks = append(notebooks, []*Program{p})
		which = append(which, i)
	}
	for n, got := range runCells(t, notebooks...) {
		checkThrown(t, which[n], notebooks[n][0], got[0])
	}
}

func TestPositionElsewhere(t *testing.T) {
	p, err := Module("const a = 1\nif (a) 2")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name         string
		line, column int
		l, c         int
		ok           bool
	}{
		{"the first", 1, 1, 1, 1, true},
		{"an assignment of ours", 2, 10, 2, 8, true},
		{"behind it", 2, 8 + len("__value = await ("), 2, 8, true},
		{"the delivery", 3, 5, 0, 0, false},
		{"no line", 0, 1, 0, 0, false},
		{"no column", 1, 0, 0, 0, false},
		{"a column too far", 1, 99, 0, 0, false},
		{"a line too far", 99, 1, 0, 0, false},
	} {
		if l, c, ok := p.Position(tc.line, tc.column); l != tc.l || c != tc.c || ok != tc.ok {
			t.Errorf("%s: %d:%d maps to %d:%d, %v; want %d:%d, %v", tc.name, tc.line, tc.column, l, c, ok, tc.l, tc.c, tc.ok)
		}
	}
}

// A hoisted import keeps its original position.
func TestPositionOfImports(t *testing.T) {
	const code = "const a = 1\nimport { sep } from 'node:path'\na"
	p, err := Cell(code, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l, c, ok := p.Position(1, 10); l != 2 || c != 1 || !ok {
		t.Errorf("%s\n1:10 maps to %d:%d, %v; want 2:1", p.Code(), l, c, ok)
	}
}

// Plain JavaScript keeps its lines, and its columns up to the first insertion.
func TestPlainJavaScriptStays(t *testing.T) {
	for _, s := range shapes {
		p, err := Module(s.code)
		if err != nil || strings.Contains(s.code, "import") || strings.Contains(s.code, "export") {
			continue
		}
		for _, stage := range p.Stages {
			if stage.Map != nil {
				p = nil
				break
			}
		}
		if p == nil {
			continue
		}
		for line := range strings.Count(s.code, "\n") + 1 {
			if l, _, ok := p.Position(line+1, 1); ok && l != line+1 {
				t.Errorf("%q: line %d of\n%s\ncame from line %d", s.code, line+1, p.Code(), l)
			}
		}
	}
}

func TestOffsets(t *testing.T) {
	const code = "a\r\n\U0001F600b\u2028\nc"
	for _, tc := range []struct{ offset, line, column int }{
		{0, 1, 1}, {1, 1, 2}, {3, 2, 1}, {7, 2, 3}, {8, 2, 4}, {11, 3, 1}, {12, 4, 1}, {13, 4, 2},
	} {
		if line, column := PositionOf(code, tc.offset); line != tc.line || column != tc.column {
			t.Errorf("%d is at %d:%d, want %d:%d", tc.offset, line, column, tc.line, tc.column)
		}
		if offset := offsetOf(code, tc.line, tc.column); offset != tc.offset {
			t.Errorf("%d:%d is %d, want %d", tc.line, tc.column, offset, tc.offset)
		}
	}
	for _, tc := range [][2]int{{0, 1}, {1, 0}, {1, 3}, {5, 1}, {-1, -1}} {
		if offset := offsetOf(code, tc[0], tc[1]); offset >= 0 {
			t.Errorf("%d:%d is %d, want none", tc[0], tc[1], offset)
		}
	}
}
