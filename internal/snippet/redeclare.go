package snippet

import (
	"slices"
	"strings"
)

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
		f.resetEnums(names)
	}
}

// resetEnums makes enums and namespaces new objects: esbuild's code would add members to an earlier
// object of the same name.
func (f *emitter) resetEnums(names []string) {
	for _, name := range names {
		isEnum := strings.Contains(f.text, "})("+name+" || {})") || strings.Contains(f.text, "})("+name+" || ("+name+" = {}))")
		if isEnum && f.declared[name]&Global != 0 {
			f.resets = append(f.resets, name)
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
