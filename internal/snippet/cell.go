package snippet

import (
	"cmp"
	"strings"
)

// cell is the program as a script for V8's REPL mode: what is static about modules has to
// go, and a branch's value is the script's by itself.
func (p parsed) cell(n Names) draft {
	f := &emitter{
		parsed:            p,
		prefix:            "await (",
		suffix:            ")",
		deliverNamed:      func(value string) string { return "await " + value },
		deliverNothing:    "void 0",
		hasCompletion:     true,
		keepsDeclarations: true,
		importName:        cmp.Or(n.Import, "import"),
		checkName:         n.Named,
	}
	f.replaceAll(p.loads, n.Import)
	f.replaceAll(p.metas, n.Meta)
	last := lastStatement(p.list)
	for i := range p.list {
		switch s := &p.list[i]; s.kind {
		case importing:
			f.hoist(s, f.dynamicImport(s))
		case exporting:
			f.unexport(s)
		case defaulting:
			f.dropDefault(s, s == last)
		}
	}
	f.emit()
	return p.edit(f.edits)
}

// bring puts text, which is what a statement does, before all others.
func (f *emitter) hoist(s *statement, text string) {
	f.edits = append(f.edits, edit{text: text + "; ", moved: true, from: s.start}, replace(s.span, gap(f.text[s.start:s.end])))
}

func (f *emitter) unexport(s *statement) {
	switch {
	case s.from.end > 0:
		f.hoist(s, f.importCall(s))
	case s.value.end > 0:
		f.blank(span{s.start, s.value.start})
	default:
		f.edits = append(f.edits, replace(s.span, gap(f.text[s.start:s.end])))
	}
}

// undefault makes a declaration of export default where one is declared, and an
// expression elsewhere. The last one is the value.
func (f *emitter) dropDefault(s *statement, last bool) {
	words := span{s.start, s.value.start}
	switch {
	case s.name != "":
		f.blank(words)
	case !last:
		f.edits = append(f.edits, replace(words, "void ("+lineEnds(f.text[words.start:words.end])))
		f.insert(s.value.end, ");")
	}
}

// blank leaves what follows in its column.
func (f *emitter) blank(at span) {
	f.edits = append(f.edits, replace(at, strings.Map(func(r rune) rune {
		if isLineEnd(r) || r == '\t' {
			return r
		}
		return ' '
	}, f.text[at.start:at.end])))
}

func (f *emitter) replaceAll(places []span, name string) {
	for _, at := range places {
		if name != "" {
			f.edits = append(f.edits, replace(at, name))
		}
	}
}

// loading imports a module.
func (f *emitter) importCall(s *statement) string {
	call := "await " + f.importName + "(" + f.text[s.from.start:s.from.end]
	if s.with.end > 0 {
		call += ", {with: " + oneLine(f.text[s.with.start:s.with.end]) + "}"
	}
	return call + ")"
}

// dynamic does what a static import does, but names don't stay up to date.
func (f *emitter) dynamicImport(s *statement) string {
	module := f.importCall(s)
	if len(s.bindings) == 0 {
		return module
	}
	if f.checkName != "" {
		module = f.checkName + "(" + module + ", " + f.text[s.from.start:s.from.end] + importedNames(s) + ")"
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
	switch {
	case whole == "":
		return "const " + list + " = " + module
	case len(names) == 0:
		return "const " + whole + " = " + module
	}
	return "const " + whole + " = " + module + ", " + list + " = " + whole
}

// importedNames are what a statement imports by name, as further arguments.
func importedNames(s *statement) string {
	var list strings.Builder
	for _, b := range s.bindings {
		switch {
		case b.imported == "*":
		case strings.ContainsAny(b.imported[:1], `'"`): // a name may be any text
			list.WriteString(", " + b.imported)
		default:
			list.WriteString(", '" + b.imported + "'")
		}
	}
	return list.String()
}
