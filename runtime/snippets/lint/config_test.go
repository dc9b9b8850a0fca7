package lint

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct{ config, source, want string }{
		{`{}`, "process; import('a'); a.constructor; globalThis[a]", ""},
		{`{"names": {"alert": "no window"}}`, "alert(process)", "1:1 name: alert is not allowed: no window"},
		{`{"properties": {"innerHTML": "use text"}}`, "a.innerHTML = 1", "1:3 property: the property innerHTML is not allowed: use text"},
		{`{"constructs": ["import-call"]}`, "import('a'); import.meta", "1:1 import-call"},
		{`{"constructs": ["import"], "imports": ["zustand"]}`, "import a from 'zustand/x'; import b from 'c'", "1:42 import"},
		{`{"deniedImports": {"zustand": "use it not"}}`, "import a from 'zustand'; import b from 'c'", "1:15 import: zustand may not be imported: use it not"},
		{`{"extends": "directive"}`, "process", "1:1 name"},
		{`{"extends": "directive", "imports": ["zustand"]}`, "import a from 'zustand'; import b from '@directive-run/core'", ""},
		{`{"extends": "directive", "imports": ["@directive-run/cli"]}`, "import '@directive-run/cli'", ""},
		{`{"extends": "directive", "allow": {"names": ["setTimeout"], "properties": ["setTimeout", "constructor"]}}`, "setTimeout(); a.setTimeout; a.constructor", ""},
		{`{"extends": "directive", "allow": {"constructs": ["import-call", "import-meta", "global-alias", "global-index", "import"]}}`,
			"import('a'); import.meta; f(globalThis); globalThis[a]; import 'fs'", ""},
		{`{"extends": "directive", "allow": {"constructs": ["function"]}}`, "new Function('a')", "1:5 name"},
	} {
		r, err := Parse([]byte(tc.config))
		if err != nil {
			t.Errorf("%s: %v", tc.config, err)
			continue
		}
		got := ""
		for _, p := range r.Check("a.ts", tc.source) {
			got += strings.TrimPrefix(p.String(), "a.ts:")
		}
		got = strings.Replace(got, " — ", " ", 1)
		place, rest, _ := strings.Cut(tc.want, " ")
		rule, message, _ := strings.Cut(rest, ": ")
		list := r.Check("a.ts", tc.source)
		if tc.want == "" && len(list) > 0 || tc.want != "" && (len(list) != 1 || list[0].Rule != rule || got != place+" "+list[0].Message || message != "" && list[0].Message != message) {
			t.Errorf("%s: %s: got %q, want %q", tc.config, tc.source, list, tc.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for config, want := range map[string]string{
		`{"name": {}}`:                     "name: unknown field",
		`{} {}`:                            "after top-level value",
		`[]`:                               "want an object",
		" null\n":                          "want an object",
		`{"extends": "react"}`:             `unknown rules "react"`,
		`{"constructs": ["delete"]}`:       `unknown rule "delete"`,
		`{"allow": {"constructs": ["a"]}}`: `unknown rule "a"`,
		strings.Repeat(" ", maxConfig+1):   "more than 1048576 bytes",
	} {
		if _, err := Parse([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", config, err, want)
		}
	}
}

// Rules survive the way through JSON.
func TestRulesAsJSON(t *testing.T) {
	data, err := json.Marshal(Directive())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Directive(), got); diff != "" {
		t.Error(diff)
	}
}

// TestDirective compares the lists with the documented ones.
func TestDirective(t *testing.T) {
	r := Directive()
	if want := strings.Fields(`process require module __dirname __filename fetch XMLHttpRequest WebSocket eval Function Buffer setImmediate
		queueMicrotask setTimeout setInterval clearTimeout clearInterval`); len(r.Names) != len(want) || len(r.Properties) != len(want)+1 {
		t.Errorf("%d names, %d properties", len(r.Names), len(r.Properties))
	} else {
		for _, name := range want {
			if r.Names[name] == "" || r.Properties[name] == "" {
				t.Errorf("%s is allowed", name)
			}
		}
	}
	if len(r.Imports) != 17 || len(r.DeniedImports) != 4 || !slices.Equal(r.Constructs, constructs) {
		t.Errorf("%d imports, %d denied, %q", len(r.Imports), len(r.DeniedImports), r.Constructs)
	}
}

// Invalid code has one problem, which is esbuild's.
func TestSyntaxErrors(t *testing.T) {
	for _, tc := range []struct{ path, source, want string }{
		{"a.ts", "process\nlet a = ;", `a.ts:2:9 — Unexpected ";"`},
		{"a.ts", "const 😀 = 1", "a.ts:1:7 — Expected identifier but found \"😀\""},
		{"a.ts", "/* 😀 */ let a b", "a.ts:1:16 — Expected \";\" but found \"b\""},
		{"a.js", "let a: string", `a.js:1:6 — Expected ";" but found ":"`},
		{"a.mts", "<a/>", `a.mts:1:3 — Expected ">" but found "/"`},
		{"a.ts", "<a/> b", `a.ts:1:3 — Expected ">" but found "/"`},
		{"a.ts", "import a from 'b';\nwith (a) {}", "a.ts:2:1 — With statements cannot be used in an ECMAScript module"},
		{"a.js", "export { process }", `a.js:1:10 — "process" is not declared in this file`},
		{"a.ts", "\xff", "a.ts:1:1 — the code is not UTF-8"},
		{"a.ts", strings.Repeat("(", 2000), "a.ts:1:2001 — Unexpected end of file"},
	} {
		list := Directive().Check(tc.path, tc.source)
		if len(list) != 1 || list[0].String() != tc.want || list[0].Rule != Syntax {
			t.Errorf("%.100q: %q, want %s", tc.source, list, tc.want)
		}
	}
}

func TestOtherFiles(t *testing.T) {
	for _, path := range []string{"a.json", "src/process.md", "a", ".ts/a"} {
		if list := Directive().Check(path, `{"a": process}`); len(list) > 0 {
			t.Errorf("%s: %q", path, list)
		}
	}
	for _, path := range []string{"a.ts", "a.mts", "a.cts", "a.tsx", "a.js", "a.mjs", "a.cjs", "a.jsx", "b/.ts"} {
		if list := Directive().Check(path, "process"); len(list) != 1 {
			t.Errorf("%s: %q", path, list)
		}
	}
}

// Messages name the denied code, the reason, and what to do instead.
func TestMessages(t *testing.T) {
	for source, want := range map[string]string{
		"process.exit()":                "process is not allowed: only Node has it, and examples should run in browsers too",
		"a.constructor":                 "the property constructor is not allowed: it leads to Function, which makes code of strings. Use the class by its name",
		"import '@directive-run/cli/x'": "@directive-run/cli may not be imported: it is a tool for the command line or a server, not for snippets",
		"import './a'":                  "the import of a file must end in .js, also if the file is .ts or .tsx: \"./a\"",
		"f(window)":                     "window may only be used as in window.name: its use under another name cannot be checked",
		"self[a]":                       "self[…] is not allowed: the name cannot be checked. Write self.name",
	} {
		if list := Directive().Check("a.ts", source); len(list) != 1 || list[0].Message != want {
			t.Errorf("%s: %q", source, list)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	const head = "import { createModule } from '@directive-run/core'\n"
	const part = "var counter = createModule('counter', {\n\tschema: { facts: { count: 0 as number } },\n" +
		"\tinit: (facts: { count: number }) => { facts.count = facts.count ?? 0 },\n})\n"
	for _, n := range []int{10, 80} {
		source := head + strings.Repeat(part, n)
		b.Run(strconv.Itoa(len(source)), func(b *testing.B) {
			b.SetBytes(int64(len(source)))
			for b.Loop() {
				if list := Directive().Check("src/main.ts", source); len(list) > 0 {
					b.Fatal(list)
				}
			}
		})
	}
}
