package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/internal/snippet"
)

func TestFiles(t *testing.T) {
	for _, tc := range []struct {
		name, specifier string
		files           []string
		want            string
	}{
		{"TypeScript first", "./a.js", []string{"src/a.js", "src/a.tsx", "src/a.ts"}, "src/a.ts"},
		{"TSX", "./a.js", []string{"src/a.js", "src/a.tsx"}, "src/a.tsx"},
		{"JavaScript", "./a.js", []string{"src/a.js"}, "src/a.js"},
		{"JSX", "./a.js", []string{"src/a.jsx"}, "src/a.jsx"},
		{"exact", "./a.ts", []string{"src/a.ts", "src/a.ts.ts"}, "src/a.ts"},
		{"mjs", "./a.mjs", []string{"src/a.mts"}, "src/a.mts"},
		{"no extension", "./a", []string{"src/a.ts"}, "src/a.ts"},
		{"dot in a name", "./a.model", []string{"src/a.model.ts"}, "src/a.model.ts"},
		{"extension twice", "./a.js", []string{"src/a.js.ts"}, "src/a.js.ts"},
		{"parent", "../lib/a.js", []string{"lib/a.ts"}, "lib/a.ts"},
		{"index", "./lib", []string{"src/lib/index.ts"}, "src/lib/index.ts"},
		{"index with a slash", "./lib/", []string{"src/lib.ts", "src/lib/index.js"}, "src/lib/index.js"},
		{"index of the parent", "..", []string{"index.tsx"}, "index.tsx"},
		{"path that is not clean", "./x/../a.js", []string{"src/./a.ts"}, "src/./a.ts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := []File{{"src/main.ts", fmt.Sprintf("import { name } from %q; __return(name)", tc.specifier)}}
			for _, name := range tc.files {
				files = append(files, File{name, fmt.Sprintf("export const name = %q", name)})
			}
			program, problems := bundleFiles(t, Options{}, files...)
			if program == nil {
				t.Fatal(problems)
			}
			if !strings.Contains(program.Code, fmt.Sprintf("%q", tc.want)) {
				t.Errorf("not %s:\n%s", tc.want, program.Code)
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	cases := []struct {
		name  string
		files []File
		want  string
	}{
		{"exports", []File{{"src/main.ts", "export const a: number = 1; import * as m from './main.js'; __return(Object.keys(m))"}}, `["a"]`},
		{"cycle", []File{
			{"src/main.ts", "import { b } from './b.js'; export const a = () => 1; __return(b())"},
			{"src/b.ts", "import { a } from './main.js'; export const b = () => a() + 1"},
		}, `2`},
		{"JSON", []File{{"src/main.ts", "import d, { n } from './d.json'; __return([d, n])"}, {"src/d.json", `{"n": 1, "a-b": [2]}`}}, `[{"n":1,"a-b":[2]},1]`},
		{"await in an import", []File{{"src/main.ts", "import { a } from './a.js'; __return(a)"}, {"src/a.ts", "export const a = await Promise.resolve(1)"}}, `1`},
		{"no require", []File{{"src/main.ts", "__return(typeof require)"}}, `"undefined"`},
		{"decorator", []File{{"src/main.ts", "function d(v: any, c: any) { __return(c.kind) } @d class A {}"}}, `"class"`},
		{"folders of the host", []File{{"src/main.ts", "const f = (x) => require('./' + x); try { f('build.go') } catch (e) { __return(e.name) }"}}, `"TypeError"`},
		{"folders of the host, escaped", []File{{"src/main.ts", `const f = (x) => r\u0065quire("./" + x); try { f("build.go") } catch (e) { __return(e.name) }`}}, `"TypeError"`},
		{"same names", []File{{"src/main.ts", "import { f } from './a.js'; const x = 1; __return([x, f()])"}, {"src/a.ts", "const x = 2; export const f = () => x"}}, `[1,2]`},
	}
	codes := make([]string, len(cases))
	for i, tc := range cases {
		program, problems := bundleFiles(t, Options{}, tc.files...)
		if program == nil {
			t.Fatalf("%s: %v", tc.name, problems)
		}
		codes[i] = program.Code
	}
	for i, r := range nodeAll(t, codes) {
		if tc := cases[i]; r.Error != "" || r.Value != tc.want {
			t.Errorf("%s: %+v, want %s, of\n%s", tc.name, r, tc.want, codes[i])
		}
	}
}

func TestProblems(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, tc := range []struct {
		name  string
		files []File
		want  []string
	}{
		{"several", []File{
			{"src/main.ts", "import './nope.js';\n/* 😀 */ import { b, c } from './a.js';\nb(c)"},
			{"src/a.ts", "export const c = 1;\nimport 'nope'"},
		}, []string{
			"src/a.ts:2:8 — " + `cannot find package "nope" in the packages of this sandbox`,
			"src/main.ts:1:8 — " + `cannot find "./nope.js"`,
		}},
		{"syntax in two files", []File{{"src/main.ts", "import './a.js'; import './b.js'"}, {"src/a.ts", "'😀' + ) "}, {"src/b.ts", "const 1"}}, []string{
			"src/a.ts:1:8 — " + `Unexpected ")"`,
			"src/b.ts:1:7 — " + `Expected identifier but found "1"`,
		}},
		{"missing export", []File{{"src/main.ts", "import { b } from './a.js'; b()"}, {"src/a.ts", "export const c = 1"}}, []string{
			"src/main.ts:1:10 — " + `"b" is not exported by "src/a.ts"`,
		}},
		{"JSON", []File{{"src/main.ts", "import './a.json'"}, {"src/a.json", "{\n \"😀\": x}"}}, []string{
			"src/a.json:2:8 — " + `Unexpected "x" in JSON`,
		}},
		{"deep JSON", []File{{"src/main.ts", "import './a.json'"}, {"src/a.json", strings.Repeat("[", 100_000)}}, []string{
			"src/a.json:1:100001 — " + "Unexpected end of file in JSON",
		}},
		{"extension", []File{{"src/main.ts", "import './a.css'"}, {"src/a.css", ""}}, []string{
			"src/main.ts:1:8 — " + `the extension of "src/a.css" is not supported`,
		}},
		{"long path", []File{{"src/main.ts", "import './" + long + "'"}}, []string{
			"src/main.ts:1:8 — " + (`cannot find "./` + long)[:maxText] + "…",
		}},
		{"glob", []File{{"src/main.ts", "const x = 'bundle.go';\nimport('./' + x)"}}, []string{
			"src/main.ts:2:1 — " + "import() needs a string as its path",
		}},
		{"large", []File{{"src/main.ts", strings.Repeat("//\n", 100_000)}}, []string{
			"src/main.ts:1:1 — " + "the file has 300000 bytes, the limit is 262144",
		}},
		{"deep", []File{{"src/main.ts", strings.Repeat("(", 10_000)}}, []string{
			"src/main.ts:1:10001 — " + "Unexpected end of file",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := bundleFiles(t, Options{}, tc.files...)
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestManyProblems(t *testing.T) {
	_, problems := bundleOne(t, nil, numbered(500, "import './nope%d.js';\n"))
	if len(problems) != maxProblems {
		t.Errorf("%d problems", len(problems))
	}
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// No file of the host is read: not for source maps, nor for paths.
func TestNoFilesOfTheHost(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret.map")
	write(t, name, "SECRET")
	for _, code := range []string{
		"//# sourceMappingURL=file://" + name,
		"//@ sourceMappingURL=file://" + name,
		"/*# sourceMappingURL=file://" + name + " */",
		"//# sourceMappingURL=" + name,
	} {
		before := accessTime(t, name)
		program, problems := bundleOne(t, nil, "__return(1);\n"+code)
		if program == nil {
			t.Fatal(problems)
		}
		if _, _, _, ok := program.Position(lineOf(program.Code, "__return"), 1); !ok {
			t.Errorf("%s: no position", code)
		}
		if accessTime(t, name) != before {
			t.Errorf("%s: the file was read", code)
		}
	}
	for _, specifier := range []string{name, "file://" + name, "../../../.." + name, "./../../../../.." + name} {
		_, problems := bundleOne(t, nil, fmt.Sprintf("import a from %q; a()", specifier))
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "cannot ") {
			t.Errorf("%s: %v", specifier, problems)
		}
	}
}

// accessTime returns the access time of a file, after it is set to a time before the last
// change, so that mounts with relatime record the next access.
func accessTime(t *testing.T, name string) time.Time {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return atime(info)
}

func lineOf(code, text string) int {
	before, _, _ := strings.Cut(code, text)
	return strings.Count(before, "\n") + 1
}

func TestPosition(t *testing.T) {
	files := []File{
		{"src/main.ts", "import { f } from './a.js';\ninterface I { a: number }\nconst i: I = { a: 1 };\n/* 😀 */ f(i.a);\n"},
		{"src/./a.tsx", "type T = number;\n\nexport function f(n: T) {\n  '😀'; throw new Error('x' + n);\n}\n"},
	}
	program, problems := bundleFiles(t, Options{}, files...)
	if program == nil {
		t.Fatal(problems)
	}
	for _, tc := range []struct {
		text, path string
		line, col  int
	}{
		{"throw", "src/./a.tsx", 4, 9},
		{"new Error", "src/./a.tsx", 4, 15},
		{"f(i.a)", "src/main.ts", 4, 10},
		{"var i", "src/main.ts", 3, 1},
	} {
		before, _, _ := strings.Cut(program.Code, tc.text)
		column := utf16Length(before[strings.LastIndexByte(before, '\n')+1:]) + 1
		path, l, c, ok := program.Position(strings.Count(before, "\n")+1, column)
		if got := fmt.Sprint(path, l, c, ok); got != fmt.Sprint(tc.path, tc.line, tc.col, true) {
			t.Errorf("%s: %s, want %s:%d:%d", tc.text, got, tc.path, tc.line, tc.col)
		}
	}
	for _, at := range [][2]int{{0, 1}, {1, 0}, {-1, -1}, {10_000, 1}} {
		if _, _, _, ok := program.Position(at[0], at[1]); ok {
			t.Errorf("%v has a position", at)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	files := []File{{"src/main.ts", "1"}}
	run := func(ctx context.Context, _ Job) (Built, error) { return Built{}, ctx.Err() }
	if _, _, err := Bundle(ctx, files, Options{Run: run}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Decorators follow the snippet's tsconfig.json, or a comment.
func TestDecorators(t *testing.T) {
	const legacy = "function P(t: any, k: any, i: number) {}\nclass A { f(@P x: number) {} }\nexport {}"
	for _, tc := range []struct{ config, entry, problem string }{
		{"", "function D(v: any, c: any) {}\n@D class A {}", ""},
		{"", legacy, "experimental"},
		{"", "/** @experimentalDecorators */\n" + legacy, ""},
		{"{\n// as usual\n\"compilerOptions\": {\"experimentalDecorators\": true,},\n}", legacy, ""},
		{`{"compilerOptions": {"experimentalDecorators": true, "emitDecoratorMetadata": true}}`, legacy, snippet.NoMetadata},
		{`{"compilerOptions": {"experimentalDecorators": true, "emitDecoratorMetadata": true}}`, "export const a = '@'", ""},
	} {
		j := Job{Files: []File{{Path: "src/main.ts", Source: tc.entry}, {Path: "tsconfig.json", Source: tc.config}}}
		text := ""
		for _, p := range j.Run().Problems {
			text += p.Message
		}
		if tc.problem == "" && text != "" || !strings.Contains(text, tc.problem) {
			t.Errorf("%s with %s: %q, want %q", tc.entry, tc.config, text, tc.problem)
		}
	}
}
