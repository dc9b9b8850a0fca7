package bundle

import (
	"path"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"gaol/internal/snippet"
)

// FuzzPaths checks that imports find only files of the snippet, and that problems are in its
// files.
func FuzzPaths(f *testing.F) {
	for _, specifier := range []string{"./a.js", "../a", "./", "..", "/etc/passwd", "a", "@a/b/c", "node:fs", "", "./a\x00", "\u2028", "data:text/javascript,1", "#a", "./a?b"} {
		f.Add("src/a.ts", specifier)
	}
	f.Fuzz(func(t *testing.T, name, specifier string) {
		if !utf8.ValidString(specifier) || len(name) > 128 || len(specifier) > 1000 {
			return
		}
		files := []File{{"src/main.ts", "import * as a from " + snippet.Quote(specifier) + ";\n a;"}, {name, "export const a = 'the file'"}}
		program, problems, err := Bundle(t.Context(), files, Options{Run: inProcess})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.Path != "src/main.ts" && p.Path != name || p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Errorf("%q imports %q: %+v", name, specifier, p)
			}
		}
		if program != nil && !isRelative(specifier) && strings.Contains(program.Code, "the file") {
			if path.Clean(name) != "src/main.ts" {
				t.Errorf("%q is %q", specifier, name)
			}
		}
	})
}

// FuzzPosition checks that any code is a program or has problems, and that positions are
// those of its files.
func FuzzPosition(f *testing.F) {
	for _, code := range []string{
		"import { a } from './a.js';\nconsole.log(a)", "enum A { a = 'x', b = a + a }", "const '😀'", "\u2028f()", "<T>(a: T) => a",
		"//# sourceMappingURL=data:application/json;base64,e30=", "import x from './d.json'; x", "export * from './main.js'",
		"@d class A { accessor a = 1 }", "import('./a.js')", "require('./' + x)", "`${import('./a' + b)}`", "/*# sourceMappingURL=file:///etc/passwd */",
	} {
		f.Add(code, 1, 1)
	}
	f.Fuzz(func(t *testing.T, code string, line, column int) {
		if len(code) > 4096 {
			return
		}
		files := []File{{"src/main.ts", code}, {"src/a.ts", code + "\nexport const a = 1"}, {"src/d.json", `{"a": 1}`}}
		program, problems, err := Bundle(t.Context(), files, Options{Run: inProcess})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			checkPlace(t, files, p.Path, p.Line, p.Column)
		}
		if program == nil {
			return
		}
		if name, l, c, ok := program.Position(line, column); ok {
			checkPlace(t, files, name, l, c)
		}
		for l := range strings.Count(program.Code, "\n") + 2 {
			if name, l, c, ok := program.Position(l, 1); ok {
				checkPlace(t, files, name, l, c)
			}
		}
	})
}

// checkPlace checks that a place is in one of the files. esbuild's lines end where those of
// JavaScript do.
func checkPlace(t *testing.T, files []File, name string, line, column int) {
	t.Helper()
	for _, f := range files {
		if f.Path != name {
			continue
		}
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(f.Source), "\n")
		if line < 1 || line > len(lines) || column < 1 || utf8.ValidString(f.Source) && column > utf16Length(lines[line-1])+1 {
			t.Errorf("%s:%d:%d is not in %q", name, line, column, f.Source)
		}
		return
	}
	t.Errorf("%q is no file", name)
}

// utf16Length returns the length of text in UTF-16 code units.
func utf16Length(text string) int { return len(utf16.Encode([]rune(text))) }
