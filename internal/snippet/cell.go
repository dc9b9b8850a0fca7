package snippet

import (
	"errors"
	"strings"
)

// cell returns the program as a script for V8's REPL mode. Static module syntax is
// replaced, and the value of a branch is the script's completion value without changes.
func (p parsed) cell(n Names) *Program {
	f := &emitter{
		parsed:    p,
		prefix:    "await (",
		suffix:    ")",
		noValue:   "void 0",
		await:     "await ",
		cell:      true,
		checkName: n.Named,
		declared:  n.Declared,
		declares:  map[string]Declared{},
	}
	for _, at := range p.metas {
		if n.Meta != "" {
			f.edits = append(f.edits, replace(at, n.Meta))
		}
	}
	last := lastStatement(p.list)
	for i := range p.list {
		switch s := &p.list[i]; s.kind {
		case importing:
			names := make([]string, len(s.bindings))
			for i, b := range s.bindings {
				names[i] = b.local
			}
			assign := f.conflicts(names, Lexical|Constant)
			if assign {
				f.renew(names, Lexical)
			}
			f.edits = append(f.edits, f.hoist(s.span, f.dynamicImport(s, assign))...)
		case exporting:
			f.unexport(s)
		case defaulting:
			f.dropDefault(s, s == last)
		}
	}
	f.redeclare()
	f.guardConstants(n.Constants)
	f.emit()
	program := f.program(p.edit(append(f.prologue(), f.edits...)))
	program.Declares = f.declares
	return program
}

func (f *emitter) unexport(s *statement) {
	switch {
	case s.from.end > 0:
		f.edits = append(f.edits, f.hoist(s.span, f.importCall(s))...)
	case s.value.end > 0:
		f.blank(span{s.start, s.value.start})
	default:
		f.edits = append(f.edits, f.remove(s.span))
	}
}

// dropDefault turns a named export default into a declaration, and any other into an
// expression. The last statement is the value.
func (f *emitter) dropDefault(s *statement, last bool) {
	words := span{s.start, s.value.start}
	switch {
	case s.name() != "":
		f.blank(words)
	case !last:
		f.edits = append(f.edits, replace(words, "void ("+lineEnds(f.text[words.start:words.end])))
		f.insert(s.value.end, ");")
	}
}

// blank replaces text by spaces, so that the columns after it do not change.
func (f *emitter) blank(at span) {
	f.edits = append(f.edits, replace(at, strings.Map(func(r rune) rune {
		if isLineEnd(r) || r == '\t' {
			return r
		}
		return ' '
	}, f.text[at.start:at.end])))
}

// importCall returns the dynamic import of a statement's module.
func (f *emitter) importCall(s *statement) string {
	call := "await import(" + f.text[s.from.start:s.from.end]
	if s.with.end > 0 {
		call += ", {with: " + oneLine(f.text[s.with.start:s.with.end]) + "}"
	}
	return call + ")"
}

// dynamicImport returns code that binds the names of a static import, but not as live
// bindings. With assign, the names exist.
func (f *emitter) dynamicImport(s *statement, assign bool) string {
	module := f.importCall(s)
	if len(s.bindings) == 0 {
		return module
	}
	if f.checkName != "" {
		module = f.checkName + "(" + module + ", " + f.text[s.from.start:s.from.end] + f.importedNames(s) + ")"
	}
	var names []string
	whole := ""
	for _, b := range s.bindings {
		switch b.imported {
		case "*":
			whole = b.local
		case b.local:
			names = append(names, b.local)
		default:
			names = append(names, b.imported+": "+b.local)
		}
	}
	list := "{" + strings.Join(names, ", ") + "}"
	keyword, end := "let ", ""
	if assign {
		keyword, list, end = "", "("+list, ")"
	}
	switch {
	case whole == "":
		return keyword + list + " = " + module + end
	case len(names) == 0:
		return keyword + whole + " = " + module
	}
	return keyword + whole + " = " + module + ", " + list + " = " + whole + end
}

// importedNames returns the names that must exist in a module as further arguments of a call.
func (f *emitter) importedNames(s *statement) string {
	var list strings.Builder
	for _, b := range s.bindings {
		switch {
		case b.imported == "*", f.unused[b.local]:
		case strings.ContainsAny(b.imported[:1], `'"`): // a quoted name may be any text
			list.WriteString(", " + b.imported)
		default:
			list.WriteString(", '" + b.imported + "'")
		}
	}
	return list.String()
}

// Unfinished reports whether code is not a valid cell but could become one by appending to
// it: a bracket, a template or a comment is open, or an operand is missing.
func Unfinished(code string) bool {
	message := syntaxErrorMessage(code)
	switch {
	case strings.HasSuffix(message, "end of file"), strings.HasSuffix(message, "to terminate multi-line comment"):
		return true
	case message == unterminated: // a template, or a string that cannot be closed any more
		return syntaxErrorMessage(code+"\n`") != unterminated
	}
	return false
}

// unterminated is esbuild's message for templates, too.
const unterminated = "Unterminated string literal"

// syntaxErrorMessage returns why code is not a valid cell, or "".
func syntaxErrorMessage(code string) string {
	_, err := Cell(code)
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return e.Message
	}
	return ""
}
