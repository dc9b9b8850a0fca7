package snippet

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
)

// esbuild reports whether code is valid JavaScript, of a module if the file name requires it,
// and returns it as esbuild prints it.
func esbuild(name, code string) (string, bool) {
	r := api.Transform(code, api.TransformOptions{
		Sourcefile: name, LogLevel: api.LogLevelSilent, Charset: api.CharsetUTF8, MinifyWhitespace: true, TreeShaking: api.TreeShakingFalse,
	})
	return string(r.Code), len(r.Errors) == 0
}

// limited reports whether an error is about a limit of this package.
func limited(err error) bool {
	for _, limit := range []string{nestedTooDeeply, "limit is"} {
		if strings.Contains(err.Error(), limit) {
			return true
		}
	}
	return false
}

func addShapes(f *testing.F) {
	for _, s := range shapes {
		f.Add(s.code)
	}
	for _, c := range wrongShapes {
		f.Add(c.code)
	}
}

// FuzzModule checks that any text is a valid program or a SyntaxError in the snippet, that
// valid modules stay valid, and that positions are in the snippet.
func FuzzModule(f *testing.F) {
	addShapes(f)
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 4096 {
			return
		}
		_, valid := esbuild("a.mjs", code)
		if parse(code, maxNesting).fenced {
			valid = false // three backticks at the start of a line always mean Markdown
		}
		for _, module := range []bool{true, false} {
			p, err := Module(code)
			if !module {
				p, err = Cell(code, nil)
			}
			if err != nil {
				checkError(t, code, err, valid)
				continue
			}
			checkPositions(t, code, p)
		}
		if p, err := Cell(code, nil); err == nil {
			// A script is not strict, but esbuild would make it so for a top-level await.
			if _, ok := esbuild("", "(async () => {"+p.Code()+"\n})"); !ok {
				t.Errorf("%q became\n%s\nwhich is not valid JavaScript", code, p.Code())
			}
		}
		if p, err := Module(code); err == nil {
			if _, ok := esbuild("a.mjs", p.Code()); !ok {
				t.Errorf("%q became\n%s\nwhich is not a valid module", code, p.Code())
			}
		}
	})
}

func checkError(t *testing.T, code string, err error, valid bool) {
	t.Helper()
	e, ok := errors.AsType[*SyntaxError](err)
	switch {
	case !ok || e.Message == "" || strings.HasPrefix(e.Message, internalError):
		t.Errorf("%q: %v is not a SyntaxError", code, err)
	case utf8.ValidString(code) && offsetOf(code, e.Line, e.Column) < 0:
		t.Errorf("%q: %v is outside the code", code, err)
	case valid && utf8.ValidString(code) && !limited(err):
		t.Errorf("%q: %v, but it is a valid module", code, err)
	}
	_ = e.Frame()
}

func checkPositions(t *testing.T, code string, p *Program) {
	t.Helper()
	for line := range strings.Count(p.Code(), "\n") + 3 {
		for _, column := range []int{0, 1, 2, 7, 19, 20, 33, 1000} {
			if l, c, ok := p.Position(line, column); ok && offsetOf(code, l, c) < 0 {
				t.Errorf("%q: %d:%d of\n%s\nleads to %d:%d", code, line, column, p.Code(), l, c)
			}
		}
	}
}

// FuzzParse checks that the parser accepts all code that esbuild accepts, and finds where
// statements start: a semicolon before each changes nothing.
func FuzzParse(f *testing.F) {
	addShapes(f)
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 4096 || !utf8.ValidString(code) || strings.ContainsAny(code, "@#") || strings.Contains(code, "accessor") {
			return // esbuild handles decorators and accessors, and compile replaces the #! of the first line
		}
		want, valid := esbuild("a.mjs", ";"+code) // after it a string is no directive, here as below
		if !valid {
			return
		}
		r := parse(code, maxNesting)
		if r.failed {
			if r.refusal == "" {
				t.Errorf("%q: the parser stops at %d", code, r.tok.start)
			}
			return
		}
		got, valid := esbuild("a.mjs", apart(code, r.root.Kids))
		if strip := strings.NewReplacer(";", "", "\n", "").Replace; !valid || strip(got) != strip(want) {
			t.Errorf("%q: statements begin elsewhere than in %q:\n%s\n%s", code, apart(code, r.root.Kids), got, want)
		}
	})
}

// apart inserts a semicolon before each statement.
func apart(code string, list []*Node) string {
	var b strings.Builder
	last := 0
	for _, s := range list {
		b.WriteString(code[last:s.Start] + ";")
		last = s.Start
	}
	return b.String() + code[last:]
}
