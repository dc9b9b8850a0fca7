package snippet

import (
	"cmp"
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

// A declaration is one of let, const or var, outside functions.
type declaration struct {
	span    // its keyword
	keyword string
	head    bool // in the head of a for
	targets []target
}

// A target is a name or a pattern. Its initial value, if it has one, ends at valueEnd.
type target struct {
	span
	valueEnd int
	node     *Node
}

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
		before := f.declared[name]
		if before&Lexical != 0 || before == 0 && form&Lexical != 0 {
			f.lets = append(f.lets, name)
		} else if before == 0 {
			f.vars = append(f.vars, name)
		}
	}
}

// redeclare adapts the declarations outside functions to the declarations of earlier cells.
func (f *emitter) redeclare() {
	for _, d := range f.decls {
		form := Lexical
		switch d.keyword {
		case "var":
			form = Global
		case "const":
			form |= Constant
		}
		var names []string
		for _, t := range d.targets {
			names = append(names, t.node.bound()...)
		}
		switch {
		case f.conflicts(names, form):
			f.renew(names, form)
			f.assignAll(d, form)
		case d.keyword == "const":
			f.edits = append(f.edits, edit{span: d.span, text: "let  ", moved: true, from: d.start})
		}
		if form == Global {
			f.resetEnums(names)
		}
	}
	for i := range f.list {
		f.redeclareStatement(&f.list[i])
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
func (f *emitter) assignAll(d declaration, form Declared) {
	f.blank(d.span)
	for i, t := range d.targets {
		isPattern := strings.ContainsAny(f.text[t.start:t.start+1], "[{")
		switch {
		case d.head:
		case isPattern:
			open := "("
			if i == 0 {
				open = "void (" // the statement before it may lack a semicolon
			}
			f.insert(t.start, open)
			f.insert(t.valueEnd, ")")
		case t.valueEnd == t.end && form&Lexical != 0:
			f.insert(t.end, " = void 0")
		}
	}
}

// redeclareStatement adapts a function or a class.
func (f *emitter) redeclareStatement(s *statement) {
	kind, start, end := s.kind, s.start, s.end
	if kind == exporting || kind == defaulting {
		kind, start, end = s.declares, s.value.start, s.value.end
	}
	name := s.name()
	names := []string{name}
	switch {
	case name == "":
	case kind == class && f.conflicts(names, Lexical):
		f.renew(names, Lexical)
		f.insert(start, name+" = ")
		f.insert(end, ";")
	case kind == function && f.conflicts(names, Global):
		f.renew(names, Global)
		l := lexer{code: f.text, pos: s.node.Key.Start}
		head := name + " = " + oneLine(f.text[start:l.pos])
		f.moves = append(f.moves, move{span{l.next().end, end}, head})
		f.edits = append(f.edits, f.remove(span{start, end}))
	}
}

// prologue returns the edits that declare names and assign functions before all other code.
func (f *emitter) prologue() []edit {
	text := ""
	for _, list := range []struct {
		before, after string
		names         []string
	}{{"let ", ";", f.lets}, {"var ", ";", f.vars}, {"", " = void 0;", f.resets}} {
		slices.Sort(list.names)
		if names := slices.Compact(list.names); len(names) > 0 {
			text += list.before + strings.Join(names, ", ") + list.after
			if list.before == "" {
				text = strings.ReplaceAll(text, ", ", " = ")
			}
		}
	}
	edits := []edit{insert(0, text)}
	for _, m := range f.moves {
		edits = append(edits, f.moveToStart(m)...)
	}
	return edits
}

// A move is the text of a function after its name, and its prefix at the start of the code.
type move struct {
	span
	head string
}

// moveToStart returns the edits that insert a function at the start, with the edits of its text.
func (f *emitter) moveToStart(m move) []edit {
	var inside, others []edit
	for _, e := range f.edits {
		if e.start >= m.start && e.end <= m.end && (e.end < m.end || e.start > m.start) && e.start < m.end {
			inside = append(inside, e)
		} else {
			others = append(others, e)
		}
	}
	f.edits = others
	slices.SortStableFunc(inside, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	list := []edit{{text: m.head, moved: true, from: m.start}}
	at := m.start
	for _, e := range append(inside, edit{span: span{m.end, m.end}}) {
		list = append(list, edit{text: f.text[at:e.start], moved: true, from: at, copied: true})
		if at = e.end; e.text != "" {
			list = append(list, edit{text: e.text, moved: true, from: e.start})
		}
	}
	return append(list, insert(0, ";"))
}
