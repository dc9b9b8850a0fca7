package snippet

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
)

// esbuild says whether code is JavaScript, a module's if the file's name says so, and
// gives it as esbuild writes it.
func esbuild(name, code string) (string, bool) {
	r := api.Transform(code, api.TransformOptions{
		Sourcefile: name, LogLevel: api.LogLevelSilent, Charset: api.CharsetUTF8, MinifyWhitespace: true, TreeShaking: api.TreeShakingFalse,
	})
	return string(r.Code), len(r.Errors) == 0
}

// limited says whether an error is about a limit, which esbuild knows nothing of.
func limited(err error) bool {
	for _, limit := range []string{nestedTooDeeply, tooComplex, ambiguousSlash, "limit is", "has to be below"} {
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

// FuzzModule: whatever comes, there is a program that esbuild takes or a SyntaxError in the
// snippet; what esbuild takes stays a program; positions stay in the snippet.
func FuzzModule(f *testing.F) {
	addShapes(f)
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 4096 {
			return
		}
		_, valid := esbuild("a.mjs", code)
		if r, _ := parse(code); r.fenced {
			valid = false // three backticks that begin a line are never meant to be JavaScript
		}
		for _, make := range []func(string) (*Program, error){Module, Cell} {
			p, err := make(code)
			if err != nil {
				checkError(t, code, err, valid)
				continue
			}
			checkPositions(t, code, p)
		}
		if p, err := Cell(code); err == nil {
			// A script isn't strict, but to esbuild its await would make it so.
			if _, ok := esbuild("", "(async () => {"+p.Code+"\n})"); !ok {
				t.Errorf("%q became\n%s\nwhich is no JavaScript", code, p.Code)
			}
		}
		if p, err := Module(code); err == nil {
			if _, ok := esbuild("a.mjs", p.Code); !ok {
				t.Errorf("%q became\n%s\nwhich is no module", code, p.Code)
			}
		}
	})
}

func checkError(t *testing.T, code string, err error, valid bool) {
	t.Helper()
	e, ok := errors.AsType[*SyntaxError](err)
	switch {
	case !ok || e.Message == "" || strings.HasPrefix(e.Message, internalError):
		t.Errorf("%q: %v is no SyntaxError", code, err)
	case utf8.ValidString(code) && offsetOf(code, e.Line, e.Column) < 0:
		t.Errorf("%q: %v is not in it", code, err)
	case valid && utf8.ValidString(code) && !limited(err):
		t.Errorf("%q: %v, but it is a valid module", code, err)
	}
	_ = e.Frame()
}

func checkPositions(t *testing.T, code string, p *Program) {
	t.Helper()
	for line := range strings.Count(p.Code, "\n") + 3 {
		for _, column := range []int{0, 1, 2, 7, 19, 20, 33, 1000} {
			if l, c, ok := p.Position(line, column); ok && offsetOf(code, l, c) < 0 {
				t.Errorf("%q: %d:%d of\n%s\nleads to %d:%d", code, line, column, p.Code, l, c)
			}
		}
	}
}

// FuzzRead: the reader takes all that esbuild takes, and finds where statements begin: a
// semicolon before each changes nothing.
func FuzzRead(f *testing.F) {
	addShapes(f)
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 4096 || !utf8.ValidString(code) || strings.ContainsAny(code, "@#") {
			return // decorators are esbuild's, and the first line's #! is gone when it's read
		}
		want, valid := esbuild("a.mjs", ";"+code) // behind it a string is no directive, here as below
		if !valid {
			return
		}
		r, list := parse(code)
		if r.failed {
			if r.refusal == "" {
				t.Errorf("%q: the reader stops at %d", code, r.tok.start)
			}
			return
		}
		got, valid := esbuild("a.mjs", apart(code, list))
		if strip := strings.NewReplacer(";", "", "\n", "").Replace; !valid || strip(got) != strip(want) {
			t.Errorf("%q: statements begin elsewhere than in %q:\n%s\n%s", code, apart(code, list), got, want)
		}
	})
}

// apart puts a semicolon before each statement.
func apart(code string, list []statement) string {
	var b strings.Builder
	last := 0
	for _, s := range list {
		b.WriteString(code[last:s.start] + ";")
		last = s.start
	}
	return b.String() + code[last:]
}
