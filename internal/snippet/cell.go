package snippet

import (
	"errors"
	"slices"
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

// Declared is the form in which a cell has declared a name, to V8 and in its code.
type Declared uint8

// V8 keeps names in a scope of scripts, or as properties of globalThis. It refuses to declare a
// name of one kind again as the other, so that the later declaration becomes an assignment.
const (
	Lexical  Declared = 1 << iota // in the scope of scripts: let, const, class, import
	Global                        // a property: var, function, enum
	Constant                      // const, import; to V8 it is let, which can be declared again in all ways
)

// conflicts records a declaration of names, and reports whether V8 has one of them in its other
// form. before maps a name to its form.
func (f *emitter) conflicts(names []string, form Declared) bool {
	const forms = Lexical | Global
	conflict := false
	for _, name := range names {
		kept := form
		if before := f.declared[name] & forms; before != 0 && before != form&forms {
			conflict = true
			kept = before | form&Constant
		}
		f.declares[name] = kept
	}
	return conflict
}

// renew declares names at the start of the code that are assigned later: names in V8's scope of
// scripts, and undeclared names.
func (f *emitter) renew(names []string, form Declared) {
	for _, name := range names {
		if before := f.declared[name]; before&Lexical != 0 || before == 0 && form&Lexical != 0 {
			f.lets = append(f.lets, name)
		} else if before == 0 {
			f.vars = append(f.vars, name)
		}
	}
}

// redeclareVariables adapts declarations of variables outside functions: of var, and others at the top.
func (f *emitter) redeclareVariables(n, parent *Node) {
	switch isTop := parent == f.tree || parent != nil && parent.Kind == Export; {
	case n.isFunction():
		return
	case n.Kind == Declaration && (n.Name == "var" || isTop && (n.Name == "let" || n.Name == "const")):
		f.redeclareAll(n, parent.Kind == For)
	}
	for _, kid := range n.Kids {
		f.redeclareVariables(kid, n)
	}
}

// redeclareAll adapts one declaration. head: in the head of a for.
func (f *emitter) redeclareAll(d *Node, head bool) {
	form := map[string]Declared{"var": Global, "let": Lexical, "const": Lexical | Constant}[d.Name]
	names := d.bound()
	keyword := span{d.Start, d.Start + len(d.Name)}
	switch {
	case f.conflicts(names, form):
		f.renew(names, form)
		f.blank(keyword)
		if !head {
			f.assignAll(d, form)
		}
	case d.Name == "const":
		f.edits = append(f.edits, edit{span: keyword, text: "let  ", moved: true, from: d.Start})
	}
	if form == Global {
		// Enums and namespaces become new objects: esbuild's code would add members to an earlier object of the same name.
		for _, name := range names {
			isEnum := strings.Contains(f.text, "})("+name+" || {})") || strings.Contains(f.text, "})("+name+" || ("+name+" = {}))")
			if isEnum && f.declared[name]&Global != 0 {
				f.resets = append(f.resets, name)
			}
		}
	}
}

// assignAll turns a declaration into assignments.
func (f *emitter) assignAll(d *Node, form Declared) {
	for i, t := range d.Kids {
		switch target := t.Kids[0]; {
		case target.Kind != Binding: // a pattern
			open := "("
			if i == 0 {
				open = "void (" // the statement before it may lack a semicolon
			}
			f.insert(t.Start, open)
			f.insert(t.End, ")")
		case t.End == target.End && form&Lexical != 0:
			f.insert(t.End, " = void 0")
		}
	}
}

// redeclareStatement turns a function or a class into an assignment if V8 has its name in the other form. It takes
// place where the code is, also for a function.
func (f *emitter) redeclareStatement(s *Node) {
	d, at := s.declaration(), s.value()
	if d == nil {
		return
	}
	form := Global
	if d.Kind == Class {
		form = Lexical
	}
	names := []string{d.Key.Name}
	if !f.conflicts(names, form) {
		return
	}
	f.renew(names, form)
	f.insert(at.start, d.Key.Name+" = ")
	f.insert(at.end, ";")
	if d.Kind == Function {
		f.blank(d.Key.span()) // otherwise the function could not assign to its name
	}
}

// prologue declares names before all other code.
func (f *emitter) prologue() edit {
	text := ""
	for _, list := range []struct {
		before, between, after string
		names                  []string
	}{{"let ", ", ", ";", f.lets}, {"var ", ", ", ";", f.vars}, {"", " = ", " = void 0;", f.resets}} {
		slices.Sort(list.names)
		if names := slices.Compact(list.names); len(names) > 0 {
			text += list.before + strings.Join(names, list.between) + list.after
		}
	}
	return insert(0, text)
}

// guardConstants makes assignments to constants throw, as V8 does for const: they become assignments
// to members of the guest's object.
func (f *emitter) guardConstants() {
	for v := range f.tree.all() {
		form, known := f.declares[v.Name]
		if !known {
			form = f.declared[v.Name]
		}
		if !v.written || form&Constant == 0 {
			continue
		}
		if d := v.Scope.Find(v.Name); d != nil && d != f.tree.Scope.names[v.Name] {
			continue
		}
		with := constants + "." + v.Name
		if v.shorthand {
			with = v.Name + ": " + with
		}
		f.edits = append(f.edits, replace(v.span(), with))
	}
}
