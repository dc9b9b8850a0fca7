package examplecheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/runtime/snippets"
)

// fencesOf describes the examples of a page, one a line: line, name, code of src/main.ts.
func fencesOf(text string, mdx, allFences bool) (lines []string) {
	for _, e := range pageExamples(page{&folder{}, "x.md", []byte(text), mdx}, allFences) {
		line := fmt.Sprintf("%d %s", e.Line, e.Name)
		for _, f := range e.Files {
			line += fmt.Sprintf(" %q", f.Source)
		}
		if e.Fault != "" {
			line += " fault"
		}
		lines = append(lines, line)
	}
	return lines
}

// A page of a table is written with ' for `.
func TestFences(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		markdown   []string // nil: none
		mdx        []string // nil: as markdown
	}{
		{name: "marked", text: "# T\n\n'''ts run\na\nb\n'''\n", markdown: []string{`3 #1 "a\nb\n"`}},
		{name: "not marked", text: "'''ts\na\n'''\n\n'''sh run\na\n'''\n\n'''\na\n'''\n"},
		{name: "javascript", text: "'''JavaScript {1,3} title=\"a b\" run\na\n'''\n", markdown: []string{`1 #1 "a\n"`}},
		{name: "jsx", text: "~~~jsx run\n<a/>\n~~~\n", markdown: []string{`1 #1 "<a/>\n"`}},
		{name: "in a list", text: "1. x\n\n   '''ts run\n   a\n     b\n   '''\n2. y\n", markdown: []string{`3 #1 "a\n  b\n"`}},
		{name: "in a quote", text: "> x\n> '''ts run\n> a\n>\n> b\n> '''\n", markdown: []string{`2 #1 "a\n\nb\n"`}},
		{name: "in a quote in a list", text: "- x\n  > '''ts run\n  > a\n  > '''\n", markdown: []string{`2 #1 "a\n"`}},
		{name: "without an end", text: "'''ts run\na", markdown: []string{`1 #1 "a\n"`}},
		{name: "CRLF", text: "x\r\n\r\n'''ts run\r\na\r\n'''\r\n", markdown: []string{`3 #1 "a\r\n"`}},
		{name: "longer fence", text: "''''md\n'''ts run\na\n'''\n''''\n"},
		{name: "longer fence inside", text: "'''ts run\n''''x\n'''\n", markdown: []string{`1 #1 "''''x\n"`}},
		{name: "named", text: "'''ts run example=e file=src/b.ts\nb\n'''\n'''ts run\nx\n'''\n'''ts run example=e\nm\n'''\n'''ts run example=e\nn\n'''\n",
			markdown: []string{`1 e "b\n" "m\nn\n"`, `4 #1 "x\n"`}},
		{name: "no main", text: "'''ts run file=src/b.ts\nb\n'''\n", markdown: []string{`1 #1 "b\n" fault`}},
		{name: "skip without reason", text: "'''ts run skip\nb\n'''\n", markdown: []string{`1 #1 "b\n" fault`}},
		{name: "empty name", text: "'''ts run example=\nb\n'''\n", markdown: []string{`1 #1 "b\n" fault`}},
		{name: "HTML comment", text: "<!--\n'''ts run\na\n'''\n-->\n", mdx: []string{`2 #1 "a\n"`}},
		{name: "indented code", text: "x\n\n    '''ts run\n    a\n    '''\n", mdx: []string{`3 #1 "a\n"`}},

		{name: "JSX", text: "<Tabs>\n'''ts run\na\n'''\n</Tabs>\n", mdx: []string{`2 #1 "a\n"`}},
		{name: "JSX with attributes on lines", text: "<Tabs\n  a=\"b > c\"\n  f={() => `x>`}\n>\n  <Tab>\n    '''ts run\n    a\n      b\n\n    c\n    '''\n  </Tab>\n</Tabs>\n",
			mdx: []string{`6 #1 "a\n  b\n\nc\n"`}},
		{name: "JSX in text", text: "x <b>y</b> don't\n\n'''ts run\na\n'''\n", markdown: []string{`3 #1 "a\n"`}},
		{name: "apostrophe in JSX", text: "<p>don't</p>\n\n'''ts run\na\n'''\n", markdown: []string{`3 #1 "a\n"`}},
		{name: "MDX comment", text: "{/* it's\n\n'''ts run\na\n'''\n\n*/}\n\n'''ts run\nb\n'''\n", markdown: []string{`3 #1 "a\n"`, `9 #2 "b\n"`}, mdx: []string{`9 #1 "b\n"`}},
		{name: "export", text: "import X from 'x'\nexport const s = `\n'''ts run\na\n'''\n\n`\n\n'''ts run\nb\n'''\n", markdown: []string{`3 #1 "a\n"`, `9 #2 "b\n"`}},
		{name: "template in JSX", text: "<Demo code={`\n'''ts run\na\n'''\n`} />\n\n'''ts run\nb\n'''\n", markdown: []string{`2 #1 "a\n"`, `7 #2 "b\n"`}},
		{name: "expression", text: "{[1].map(() => {\n  return '}'\n})}\n'''ts run\nb\n'''\n", markdown: []string{`4 #1 "b\n"`}},
		{name: "expression without an end", text: "# T\n\n{ x\n\n'''ts run\na\n'''\n", markdown: []string{`5 #1 "a\n"`}},
		{name: "front matter", text: "---\ntitle: x\n---\n\n'''ts run\na\n'''\n", markdown: []string{`5 #1 "a\n"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Templates of the table use ` themselves: three ' are a fence.
			text := strings.ReplaceAll(tc.text, "'''", "```")
			for i := range tc.markdown {
				tc.markdown[i] = strings.ReplaceAll(tc.markdown[i], "'''", "```")
			}
			if diff := cmp.Diff(tc.markdown, fencesOf(text, false, false)); diff != "" {
				t.Errorf("Markdown (-want +got):\n%s", diff)
			}
			want := tc.mdx
			if want == nil {
				want = tc.markdown
			}
			if diff := cmp.Diff(want, fencesOf(text, true, false)); diff != "" {
				t.Errorf("MDX (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllFences(t *testing.T) {
	text := "```ts\na\n```\n```sh\nb\n```\n```js skip=\"why not\"\nc\n```\n"
	got := fencesOf(text, false, true)
	if diff := cmp.Diff([]string{`1 #1 "a\n"`, `7 #2 "c\n"`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPosition(t *testing.T) {
	text := "# T\n\n> - 😀x\n>\n>   ```ts run example=e\n>   ab\n>   cd\n>   ```\n\n```ts run example=e\nef\n```\n"
	list := pageExamples(page{&folder{}, "d/x.md", []byte(text), false}, false)
	if len(list) != 1 || list[0].Files[0].Source != "ab\ncd\nef\n" {
		t.Fatalf("%+v", list)
	}
	for _, tc := range []struct{ line, column, wantLine, wantColumn int }{
		{1, 1, 6, 5}, {2, 2, 7, 6}, {3, 1, 11, 1}, {4, 1, 12, 1}, {9, 9, 12, 1}, {0, 1, 6, 5},
	} {
		file, l, c, ok := list[0].Position("src/main.ts", tc.line, tc.column)
		if file != "d/x.md" || l != tc.wantLine || c != tc.wantColumn || !ok {
			t.Errorf("%+v: %s:%d:%d %v", tc, file, l, c, ok)
		}
	}
	if _, _, _, ok := list[0].Position("src/other.ts", 1, 1); ok {
		t.Error("a position in a file that does not exist")
	}
}

func TestParseInfo(t *testing.T) {
	for text, want := range map[string]fenceInfo{
		"":                           {},
		"ts":                         {ending: ".ts"},
		"TSX run":                    {ending: ".tsx", words: map[string]string{"run": ""}},
		"js{1,3} run":                {ending: ".js", words: map[string]string{"run": ""}},
		"js {1, 3}  run":             {ending: ".js", words: map[string]string{"run": ""}},
		`ts error="a \"b\" \\" run`:  {ending: ".ts", words: map[string]string{"error": `a "b" \`, "run": ""}},
		`ts skip='a "b"' file=src/x`: {ending: ".ts", words: map[string]string{"skip": `a "b"`, "file": "src/x"}},
		`ts error="open`:             {ending: ".ts", words: map[string]string{"error": "open"}},
		"ts example= run":            {ending: ".ts", words: map[string]string{"example": "", "run": ""}},
		"tsrun x":                    {words: map[string]string{"x": ""}},
		"ts =x {":                    {ending: ".ts", words: map[string]string{"": "x"}},
	} {
		if diff := cmp.Diff(want, parseInfo(text), cmp.AllowUnexported(fenceInfo{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// No page makes the parser panic, invent code, or report a line after the end.
func FuzzPage(f *testing.F) {
	f.Add("> - ```ts run\n>   a\n")
	f.Add("<A b={`\n```ts run\n`}>\n\t```js run file=x\n\t\ta\n```\n{/*\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, mdx := range []bool{false, true} {
			for _, e := range pageExamples(page{&folder{}, "x", []byte(text), mdx}, true) {
				for _, file := range e.Files {
					checkPositions(t, text, e, file)
				}
			}
		}
	})
}

func checkPositions(t *testing.T, text string, e *Example, file snippets.File) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for i, code := range strings.SplitAfter(file.Source, "\n") {
		_, line, column, ok := e.Position(file.Path, i+1, 1)
		if ok && (line < 1 || line > lines+1) {
			t.Fatalf("%q: line %d of %d", text, line, lines)
		}
		if ok && code != "" && column < 1 {
			t.Fatalf("%q: column %d", text, column)
		}
	}
}
