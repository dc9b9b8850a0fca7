package snippet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Deliver is the name of the guest's function that receives a module's value. It is a
// property of globalThis, so that it works even if the code declares the same name.
const Deliver = "__evaluated"

// A Program is a compiled snippet. Another process may send it, which need not be trusted: Stages determine
// positions only.
type Program struct {
	// Text is JavaScript, in UTF-8: an ES module or a cell, or a script to run in a module if Script is set.
	// V8 reports positions in it.
	Text   string
	Script bool
	Stages []Stage // that led to Text

	// Explicit reports whether the snippet names its value, by a return, an export default or a
	// function. Otherwise the value is the value of the last expression, which may have been
	// written for its side effects.
	Explicit bool

	// Declares maps the names that a cell declares for later cells to their form.
	Declares map[string]Declared

	snippet string
}

// Module compiles code to an ES module that calls [Deliver] once, at its end: with the
// value, or without an argument if the code ends with a statement that has none, such as a
// declaration or a loop. If Deliver was not called, the end was not reached.
//
// The error is a *[SyntaxError].
func Module(code string) (*Program, error) {
	p, err := compile(code, compiler{module: true})
	if err != nil {
		return nil, err
	}
	return p.module(), nil
}

// Normalize returns the code of [Module]. It is faster, because positions are needed for errors only.
func Normalize(code string) (string, error) {
	p, err := compile(code, compiler{module: true, unmapped: true})
	if err != nil {
		_, err = Module(code) // the same error, with its position
		return "", err
	}
	return p.module().Code(), nil
}

// Variables of runtime/internal/guest/context.cjs. Cells use them for syntax that V8 allows only in modules: a script
// evaluated by an inspector cannot use import.meta.
const (
	// Meta replaces import.meta.
	Meta = "__meta"

	// named is a function (module, specifier, ...names) that returns the module's
	// namespace and throws if it lacks one of the names.
	named = "__named"

	// constants has read-only members. Assignments to constants become assignments to its members.
	constants = "__const"
)

// Cell compiles code to a script for V8's REPL mode. Its completion value is the value, or
// undefined. Top-level declarations and imports are visible to later cells. declared maps the
// names that earlier cells of the context have declared to their form.
//
// A function declaration is visible to later cells but not called, even if it is alone; a
// function expression at the end is called. If the top level of a cell contains a return,
// its declarations are local.
//
// The error is a *[SyntaxError].
func Cell(code string, declared map[string]Declared) (*Program, error) {
	p, err := compile(code, compiler{})
	if err != nil {
		return nil, err
	}
	return p.cell(declared), nil
}

// Of returns a program from another process with the snippet that it is compiled from.
func (p *Program) Of(snippet string) *Program {
	p.snippet = newDraft(snippet).snippet
	return p
}

// Code returns the program for V8.
func (p *Program) Code() string {
	if p.Script {
		return "(0, eval)(" + Quote(p.Text+"\n//# sourceURL=") + " + import.meta.url)\n//# sourceURL=node:snippet"
	}
	return p.Text
}

// explicit reports whether the code names its value.
func (p parsed) explicit() bool {
	s := lastStatement(p.tree.Kids)
	if s == nil || p.wrapped {
		return p.wrapped
	}
	return s.Kind != Expression && s.Kind != Block && s.Kind != Branch || s.callable()
}

// Position maps a 1-based line and column of Text to a position in the original snippet.
// Columns count UTF-16 units, as V8 prints them. ok is false for code that the snippet
// does not contain, and for positions outside Code.
//
// In TypeScript and JSX, a column maps to the last position before it that esbuild's
// source map contains: the start of the name or the expression.
func (p *Program) Position(line, column int) (l, c int, ok bool) {
	offset := offsetOf(p.Text, line, column)
	if offset < 0 {
		return 0, 0, false
	}
	before, known := draft{stages: p.Stages}.origin(offset)
	if !known {
		return 0, 0, false
	}
	l, c = PositionOf(p.snippet, max(0, min(before, len(p.snippet)))) // another process may have sent the stages
	return l, c, true
}

const internalError = "gaol could not parse this"

// compile detects the language of code: JavaScript, TypeScript or JSX, plain or in Markdown.
func compile(code string, c compiler) (p parsed, err error) {
	d := newDraft(code)
	defer func() {
		if r := recover(); r != nil { // hostile code must not end the host through a bug of ours
			err = d.errorAt(0, fmt.Sprintf("%s: %v", internalError, r))
		}
	}()
	if len(code) > MaxCode {
		return parsed{}, d.errorAt(0, fmt.Sprintf("the code has %d bytes, the limit is %d", len(code), MaxCode))
	}
	if n := validLength(code); n < len(code) {
		return parsed{}, d.errorAt(n, "the code is not UTF-8")
	}
	d = d.edit(d.hideShebang(span{0, len(d.text)}))
	if p, ok := c.program(d); ok {
		return p, nil
	}
	return parsed{}, cmp.Or(c.err, d.errorAt(0, internalError))
}

// hideShebang turns #! at the start of a file or a block, after a byte order mark, into a comment.
func (d draft) hideShebang(at span) (edits []edit) {
	text := d.text[at.start:at.end]
	code := strings.TrimPrefix(text, bom)
	if len(code) < len(text) {
		edits = append(edits, replace(span{at.start, at.start + len(bom)}, ""))
	}
	if strings.HasPrefix(code, "#!") {
		start := at.end - len(code)
		edits = append(edits, replace(span{start, start + 2}, "//"))
	}
	return edits
}

// validLength returns the length of the longest prefix that is valid UTF-8.
func validLength(code string) int {
	for i, r := range code {
		if r == utf8.RuneError && !strings.HasPrefix(code[i:], "\ufffd") {
			return i
		}
	}
	return len(code)
}

// Quote returns a text as a JavaScript string.
func Quote(text string) string {
	quoted, _ := json.Marshal(text) // encoding a string cannot fail
	return string(quoted)
}

// Shorten shortens a text to a number of bytes, and marks that with an ellipsis.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// PackageOf returns the package's name of a specifier.
func PackageOf(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
