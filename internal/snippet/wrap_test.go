package snippet

import (
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"
)

func TestImports(t *testing.T) {
	const code = `import a, { type B } from "a"; import 'b' with { type: 'json' }
import type { C } from 'c'
const d = import('d'), e = import.meta, text: string = "import x from 'x'", more = ` + "`\nimport y from 'y'\n`" + `
/*
import z from 'z'
*/
if (e) return <B>{d}</B>
import { h }
  from 'h'
f()`
	c := compiler{module: true}
	var got []string
	for _, at := range c.imports(newDraft(code), api.LoaderTSX) {
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

// An import that the grammar does not allow does not move.
func TestWrongImports(t *testing.T) {
	for code, want := range map[string]string{
		"let a: any\nif (a) { import b from 'c' }\nreturn 1":     `2:17: Unexpected "b"`,
		"let a: any\nreturn a\nimport b = require('c') as any )": `3:`,
		"let a: any\nreturn a\nimport { b from 'c'":              `3:`,
	} {
		if _, err := Module(code); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
	}
}

func TestFindFence(t *testing.T) {
	for _, tc := range []struct {
		code   string
		loader api.Loader
		want   int // the line, or 0
	}{
		{"let a: A\n```js\nb", api.LoaderTS, 2},
		{"a\n  > ```js\nb\n```", api.LoaderTSX, 2},
		{"f()\n```", api.LoaderJS, 2},
		{"x = <a>b\n```\n</a>", api.LoaderTSX, 2},
		{"x = <a>b\n\t~~~js\n</a>", api.LoaderJSX, 2},
		{"x = <a\n```\n/>", api.LoaderTSX, 2},
		{"/*\n```\n*/ a", api.LoaderTS, 0},
		{"a = `\n~~~\n`", api.LoaderTSX, 0},
		{"a = '\\\n```'", api.LoaderTS, 0},
		{"x = <a b='\n```' />", api.LoaderTSX, 0},
		{"x = <a>b ```</a>", api.LoaderTSX, 0},
		{"a\n~~~b", api.LoaderTS, 0},
		{"a = )\n```", api.LoaderTS, 0}, // esbuild's error is first
	} {
		c := compiler{}
		line := 0
		if err := c.findFence(newDraft(tc.code), tc.loader); err != nil {
			line = err.Line
		}
		if line != tc.want {
			t.Errorf("%q: line %d, want %d", tc.code, line, tc.want)
		}
	}
}
