package snippet

import "strings"

// wrap makes the code the body of an async function, so that it may return. Imports move
// before it.
func wrap(d draft, imports []span) draft {
	var edits []edit
	for _, at := range imports {
		edits = append(edits, d.hoist(at, oneLine(d.text[at.start:at.end]))...)
	}
	edits = append(edits, insert(0, "(async () => {"), insert(len(d.text), "\n})"))
	return d.edit(edits)
}

// hoist replaces a statement by text at the start of the program.
func (d draft) hoist(at span, text string) []edit {
	return []edit{{text: text + "; ", moved: true, from: at.start}, d.remove(at)}
}

// remove removes a statement, except its line ends. Without the semicolon, the statements
// around it could become one.
func (d draft) remove(at span) edit { return replace(at, ";"+lineEnds(d.text[at.start:at.end])) }

// oneLine writes tokens on one line, without comments and final semicolon. They must not
// contain templates or regular expressions.
func oneLine(code string) string {
	var b strings.Builder
	l := lexer{code: code}
	for t := l.next(); t.kind != atEnd; t = l.next() {
		if text := code[t.start:t.end]; text != ";" {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

func importsOf(list []statement) []span {
	var imports []span
	for _, s := range list {
		if s.kind == importing {
			imports = append(imports, s.span)
		}
	}
	return imports
}

// imports returns the import declarations outside all brackets. Other uses of the word,
// such as import(…), import.meta and import a = b, cannot be parsed as declarations.
func (s *scanner) imports() []span {
	var list []span
	for _, start := range s.importStarts {
		p := newParser(s.code, start)
		p.types = true
		p.importStatement(&statement{})
		if !p.failed {
			list = append(list, span{start, p.last})
		}
	}
	return list
}

// exported is the part of CommonJS's exports that an expression sets.
type exported uint8

const (
	exportsNothing  exported = iota
	exportsProperty          // exports.a = 1, module.exports.a = 1
	exportsFunction          // module.exports = () => 1
)

// exports returns the part of exports that an expression sets, which is nothing if the code
// declares module or exports itself.
func (p parsed) exports(value span) exported {
	if p.bound&(setOfName("module")|setOfName("exports")) != 0 {
		return exportsNothing
	}
	target, right := assigned(p.text[:value.end], value.start)
	own := strings.TrimPrefix(target, "module.")
	switch {
	case strings.HasPrefix(own, "exports.") || strings.HasPrefix(own, "exports["):
		return exportsProperty
	case target != "module.exports":
		return exportsNothing
	}
	r := newParser(p.text[:value.end], right)
	if r.assignment(false) && !r.failed && r.tok.kind == atEnd {
		return exportsFunction
	}
	return exportsNothing
}

// assigned returns the left side of an assignment, without white space, and the offset
// after the =. The left side is empty if there is no assignment or it contains other
// expressions.
func assigned(code string, start int) (target string, right int) {
	var b strings.Builder
	l := lexer{code: code, pos: start}
	for {
		t := l.next()
		text := code[t.start:t.end]
		switch {
		case text == "=":
			return b.String(), t.end
		case t.kind == word, t.kind == quoted, t.kind == number, text == ".", text == "[", text == "]":
			b.WriteString(text)
		default:
			return "", 0
		}
	}
}
