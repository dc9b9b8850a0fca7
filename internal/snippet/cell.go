package snippet

import (
	"cmp"
	"strings"
)

// cell is the program as a script for V8's REPL mode: what is static about modules has to
// go, and a branch's value is the script's by itself.
func (p parsed) cell(n Names) draft {
	f := &finisher{
		parsed:    p,
		open:      "await (",
		shut:      ")",
		after:     func(value string) string { return "await " + value },
		none:      "void 0",
		completes: true,
		defines:   true,
		load:      cmp.Or(n.Import, "import"),
		named:     n.Named,
	}
	f.rename(p.loads, n.Import)
	f.rename(p.metas, n.Meta)
	last := lastOf(p.list)
	for i := range p.list {
		switch s := &p.list[i]; s.kind {
		case importing:
			f.bring(s, f.dynamic(s))
		case exporting:
			f.unexport(s)
		case defaulting:
			f.undefault(s, s == last)
		}
	}
	f.finish()
	return p.edit(f.edits)
}

// bring puts text, which is what a statement does, before all others.
func (f *finisher) bring(s *statement, text string) {
	f.edits = append(f.edits, edit{text: text + "; ", moved: true, from: s.start}, replace(s.span, gap(f.text[s.start:s.end])))
}

func (f *finisher) unexport(s *statement) {
	switch {
	case s.from.end > 0:
		f.bring(s, f.loading(s))
	case s.value.end > 0:
		f.blank(span{s.start, s.value.start})
	default:
		f.edits = append(f.edits, replace(s.span, gap(f.text[s.start:s.end])))
	}
}

// undefault makes a declaration of export default where one is declared, and an
// expression elsewhere. The last one is the value.
func (f *finisher) undefault(s *statement, last bool) {
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
func (f *finisher) blank(at span) {
	f.edits = append(f.edits, replace(at, strings.Map(func(r rune) rune {
		if isLineEnd(r) || r == '\t' {
			return r
		}
		return ' '
	}, f.text[at.start:at.end])))
}

func (f *finisher) rename(places []span, name string) {
	for _, at := range places {
		if name != "" {
			f.edits = append(f.edits, replace(at, name))
		}
	}
}

// loading imports a module.
func (f *finisher) loading(s *statement) string {
	call := "await " + f.load + "(" + f.text[s.from.start:s.from.end]
	if s.with.end > 0 {
		call += ", {with: " + oneLine(f.text[s.with.start:s.with.end]) + "}"
	}
	return call + ")"
}

// dynamic does what a static import does, but names don't stay up to date.
func (f *finisher) dynamic(s *statement) string {
	module := f.loading(s)
	if len(s.bindings) == 0 {
		return module
	}
	if f.named != "" {
		module = f.named + "(" + module + ", " + f.text[s.from.start:s.from.end] + importedNames(s) + ")"
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
