package snippet

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Deliver is the name of the guest's function that takes a module's value: a property of
// globalThis, so that code which has the name for itself doesn't hide it.
const Deliver = "__evaluated"

// A Program is what a snippet was made into.
type Program struct {
	// Code is JavaScript, in UTF-8.
	Code string

	// Explicit says that the snippet names its value, by a return, an export default or a
	// function. Otherwise the value is that of a last expression, which may be there for
	// what it does.
	Explicit bool

	draft draft
}

// Module turns code into an ES module that calls [Deliver] once, at its end: with the
// value, or without an argument if the code ends with what has none, like a declaration or
// a loop. So where Deliver wasn't called the end wasn't reached.
//
// The error is a *[SyntaxError].
func Module(code string) (*Program, error) {
	p, err := compile(code, true)
	if err != nil {
		return nil, err
	}
	return newProgram(p.module(), p), nil
}

// Names are a guest's own for what V8 has in modules alone. A script that an inspector
// evaluates has no import.meta, and import(…) only in a context that node:vm made with
// importModuleDynamically. An empty one leaves things as they are.
type Names struct {
	Import string // a function that does as import(…) does
	Meta   string // an object to stand for import.meta

	// Named is a function (module, specifier, ...names) that returns the module's
	// namespace if that has all names. Without one, a name that it hasn't is undefined.
	Named string
}

// Cell turns code into a script for V8's REPL mode, whose completion value is the value, or
// undefined. Top-level declarations last for later cells; imports are among them.
//
// A function's declaration is no program here: it's there for later cells, and is not
// called. An expression at the end that is a function is. In a cell whose top level
// returns, declarations are its own.
//
// The error is a *[SyntaxError].
func Cell(code string) (*Program, error) { return Names{}.Cell(code) }

// Cell is [Cell] with the guest's names.
func (n Names) Cell(code string) (*Program, error) {
	p, err := compile(code, false)
	if err != nil {
		return nil, err
	}
	return newProgram(p.cell(n), p), nil
}

// Normalize is the Code of [Module].
func Normalize(code string) (string, error) {
	p, err := Module(code)
	if err != nil {
		return "", err
	}
	return p.Code, nil
}

func newProgram(d draft, p parsed) *Program {
	return &Program{Code: d.text, Explicit: p.explicit(), draft: d}
}

// explicit reports whether the code names its value.
func (p parsed) explicit() bool {
	s := lastStatement(p.list)
	if s == nil || p.wrapped {
		return p.wrapped
	}
	return s.kind != expression && s.kind != block && s.kind != branching || s.callable
}

// Position leads from a 1-based line and column of Code to those of the snippet, as it was
// given. Columns count UTF-16, as V8 prints them. It is not ok for what the snippet didn't
// write, and for what is outside of Code.
//
// In TypeScript and JSX a column leads to the last place before it that esbuild knows: the
// beginning of the name or the expression.
func (p *Program) Position(line, column int) (l, c int, ok bool) {
	offset := offsetOf(p.Code, line, column)
	if offset < 0 {
		return 0, 0, false
	}
	before, known := p.draft.origin(offset)
	if !known {
		return 0, 0, false
	}
	l, c = positionOf(p.draft.snippet, before)
	return l, c, true
}

const internalError = "gaol failed to read this"

// compile finds out what code is: JavaScript, TypeScript or JSX, as it stands or in
// Markdown.
func compile(code string, module bool) (p parsed, err error) {
	d := newDraft(code)
	defer func() {
		if r := recover(); r != nil { // a bug of ours is not to end a host that is given hostile code
			err = d.errorAt(0, fmt.Sprintf("%s: %v", internalError, r))
		}
	}()
	if len(code) > MaxCode {
		return parsed{}, d.errorAt(0, fmt.Sprintf("the code has %d bytes, the limit is %d", len(code), MaxCode))
	}
	if n := validLength(code); n < len(code) {
		return parsed{}, d.errorAt(n, "the code is not UTF-8")
	}
	if strings.HasPrefix(code, "#!") { // there is no first line once something stands before it
		d = d.edit([]edit{replace(span{0, 2}, "//")})
	}
	c := compiler{module: module}
	if p, ok := c.program(d); ok {
		return p, nil
	}
	return parsed{}, cmp.Or(c.err, d.errorAt(0, internalError))
}

// validLength is how many bytes there are before the first that is not UTF-8.
func validLength(code string) int {
	for i, r := range code {
		if r == utf8.RuneError && !strings.HasPrefix(code[i:], "\ufffd") {
			return i
		}
	}
	return len(code)
}
