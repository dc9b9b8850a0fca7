package work

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"gaol/internal/snippet"
	"gaol/internal/wire"
)

// Source is code of a snippet.
type Source struct {
	Code     []byte
	Cell     bool                        // snippet.Cell rather than snippet.Module
	Declared map[string]snippet.Declared // of a cell
}

func (s *Source) compile() (*snippet.Program, error) {
	if s.Cell {
		return snippet.Cell(string(s.Code), s.Declared)
	}
	return snippet.Module(string(s.Code))
}

// compiled is the reply to a Source.
type compiled struct {
	Program snippet.Program
	Err     *snippet.SyntaxError
}

var compileOperation = define("compile", 0, func(s Source) compiled {
	p, err := s.compile()
	if syntax, ok := errors.AsType[*snippet.SyntaxError](err); ok { // Module and Cell return no other error
		return compiled{Err: syntax}
	}
	return compiled{Program: *p}
})

// Compile compiles a snippet. The error is a [*snippet.SyntaxError] for invalid code, and for code that
// is too complex; otherwise as that of an operation.
func (d *Domain) Compile(ctx context.Context, s Source) (*snippet.Program, error) {
	c, err := compileOperation.do(ctx, d, s)
	if err := invalid(c.Err, err, string(s.Code)); err != nil {
		return nil, err
	}
	return c.Program.Of(string(s.Code)), nil
}

// file is a file to translate.
type file struct {
	Name, Code, Config []byte
	Format             wire.TranslationFormat
}

// translated is the reply to a file.
type translated struct {
	Code   []byte
	Module bool // an ES module
	Err    *snippet.SyntaxError
}

var translateOperation = define("translate", 0, func(f file) translated {
	code, err := snippet.Translate(string(f.Name), string(f.Code)+snippet.Pragmas(string(f.Config)), f.Format == wire.CommonJSFormat)
	t := translated{[]byte(code), f.Format == wire.ModuleFormat, err}
	if f.Format == wire.DetectFormat {
		t.Module = snippet.SyntaxOf(code, nil).Module
	}
	return t
})

// Translate is [snippet.Translate]. It returns the same errors as Compile.
func (d *Domain) Translate(ctx context.Context, name, code string, commonJS bool) (string, error) {
	f := file{Name: []byte(name), Code: []byte(code), Format: wire.ModuleFormat}
	if commonJS {
		f.Format = wire.CommonJSFormat
	}
	t, err := translateOperation.do(ctx, d, f)
	return string(t.Code), invalid(t.Err, err, code)
}

// TranslateImport is Translate for a file that a program imports. It also reports whether the code is
// an ES module. The code of a file with an error throws that.
func (d *Domain) TranslateImport(ctx context.Context, f wire.Translation) (code string, module bool, err error) {
	name := path.Base(f.Path)
	t, err := translateOperation.do(ctx, d, file{[]byte(name), []byte(f.Source), []byte(f.Config), f.Format})
	err = invalid(t.Err, err, f.Source)
	if syntax, ok := errors.AsType[*snippet.SyntaxError](err); ok {
		return syntax.Program(name), f.Format == wire.ModuleFormat, nil
	}
	return string(t.Code), t.Module, err
}

// program is code whose format is unknown.
type program struct {
	Code  []byte
	Names []string // as of snippet.SyntaxOf
}

var syntaxOperation = define("detect the module format", 0, func(p program) snippet.Syntax { return snippet.SyntaxOf(string(p.Code), p.Names) })

// smallProgram is the size in bytes of code that is parsed in place, in less time than another process takes to start.
// Its tree has at most 8 MiB.
const smallProgram = 8 << 10

// SyntaxOf is [snippet.SyntaxOf]. given reports the globals of the program. Code that is too complex counts as CommonJS.
func (d *Domain) SyntaxOf(ctx context.Context, code string, given func(name string) bool) (snippet.Syntax, error) {
	names := slices.DeleteFunc(slices.Clone(snippet.CommonJS), given)
	if len(code) <= smallProgram {
		return snippet.SyntaxOf(code, names), nil
	}
	s, err := syntaxOperation.do(ctx, d, program{[]byte(code), names})
	if _, bad := errors.AsType[*Failure](err); bad {
		return snippet.Syntax{CommonJS: true}, nil
	}
	return s, err
}

const maxMessage = 4 << 10

// invalid returns the error for code: that of its parser, or of the operation.
func invalid(syntax *snippet.SyntaxError, err error, code string) error {
	if failure, ok := errors.AsType[*Failure](err); ok {
		syntax, err = &snippet.SyntaxError{Message: "the code: " + failure.Reason, Line: 1, Column: 1}, nil
	}
	if err != nil || syntax == nil {
		return err
	}
	syntax.Message = snippet.Shorten(strings.ToValidUTF8(syntax.Message, ""), maxMessage)
	return syntax.Of(code)
}
