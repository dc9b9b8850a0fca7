package snippet

import (
	"errors"
	"strings"
)

// cell returns the program as a script for V8's REPL mode. Static module syntax is
// replaced, and the value of a branch is the script's completion value without changes.
func (p parsed) cell(declared map[string]Declared) *Program {
	f := &emitter{
		parsed:   p,
		prefix:   "await (",
		suffix:   ")",
		noValue:  "void 0",
		await:    "await ",
		cell:     true,
		declared: declared,
		declares: map[string]Declared{},
	}
	for meta := range p.tree.all() {
		if meta.Kind == ImportMeta {
			f.edits = append(f.edits, replace(meta.span(), Meta))
		}
	}
	last := lastStatement(p.tree.Kids)
	for _, s := range p.tree.Kids {
		switch s.Kind {
		case ImportFrom:
			names := s.bound()
			assign := f.conflicts(names, Lexical|Constant)
			if assign {
				f.renew(names, Lexical)
			}
			f.edits = append(f.edits, f.hoist(s.span(), f.dynamicImport(s, assign))...)
		case ExportList:
			if of := s.Value(); of != nil && of.Kind == ImportFrom {
				f.edits = append(f.edits, f.hoist(s.span(), f.importCall(of))...)
			} else {
				f.edits = append(f.edits, f.remove(s.span()))
			}
		case Export:
			f.blank(span{s.Start, s.At})
		case ExportDefault:
			f.dropDefault(s, s == last)
		}
	}
	f.redeclareVariables(f.tree, nil)
	for _, s := range f.tree.Kids {
		f.redeclareStatement(s)
	}
	f.guardConstants()
	f.emit()
	program := f.program(p.edit(append([]edit{f.prologue()}, f.edits...)))
	program.Declares = f.declares
	return program
}

// dropDefault turns a named export default into a declaration, and any other into an
// expression. The last statement is the value.
func (f *emitter) dropDefault(s *Node, last bool) {
	words := span{s.Start, s.At}
	switch {
	case s.name() != "":
		f.blank(words)
	case !last:
		f.edits = append(f.edits, replace(words, "void ("+lineEnds(f.text[words.start:words.end])))
		f.insert(s.End, ");")
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
func (f *emitter) importCall(s *Node) string {
	call := "await import(" + f.text[s.Key.Start:s.Key.End]
	if with := s.Key.Value(); with != nil {
		call += ", {with: " + oneLine(f.text[with.Start:with.End]) + "}"
	}
	return call + ")"
}

// dynamicImport returns code that binds the names of a static import, but not as live
// bindings. With assign, the names exist.
func (f *emitter) dynamicImport(s *Node, assign bool) string {
	module := f.importCall(s)
	if len(s.Kids) == 0 {
		return module
	}
	module = named + "(" + module + ", " + f.text[s.Key.Start:s.Key.End] + f.importedNames(s) + ")"
	var names []string
	whole := ""
	for _, b := range s.Kids {
		switch b.Key.Name {
		case "*":
			whole = b.Name
		case b.Name:
			names = append(names, b.Name)
		default:
			names = append(names, b.Key.Name+": "+b.Name)
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
func (f *emitter) importedNames(s *Node) string {
	var list strings.Builder
	for _, b := range s.Kids {
		switch imported := b.Key.Name; {
		case imported == "*", f.unused[b.Name]:
		case strings.ContainsAny(imported[:1], `'"`): // a quoted name may be any text
			list.WriteString(", " + imported)
		default:
			list.WriteString(", '" + imported + "'")
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
	_, err := Cell(code, nil)
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return e.Message
	}
	return ""
}
