package snippet

import "strings"

// wrap makes the code the body of an async function, so that it may return. Imports move
// before it.
func wrap(d draft, imports []span) draft {
	var edits []edit
	for _, at := range imports {
		edits = append(edits, edit{text: oneLine(d.text[at.start:at.end]) + "; ", moved: true, from: at.start})
		edits = append(edits, replace(at, gap(d.text[at.start:at.end])))
	}
	edits = append(edits, insert(0, "(async () => {"), insert(len(d.text), "\n})"))
	return d.edit(edits)
}

// gap replaces a statement that was removed. Without the semicolon, the statements around
// it could become one.
func gap(text string) string { return ";" + lineEnds(text) }

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

// imports returns the import declarations outside all brackets.
func (s *scanner) imports() []span {
	var list []span
	for _, start := range s.importStarts {
		if end := importEnd(s.code, start); end > start {
			list = append(list, span{start, end})
		}
	}
	return list
}

// importEnd returns the end of a declaration: after the module's name, its attributes and
// a semicolon. It returns 0 for anything else: import(…), import.meta, import a = b.
func importEnd(code string, start int) int {
	l := lexer{code: code, pos: start}
	t := l.next()
	for t.kind != quoted {
		t = l.next()
		if text := code[t.start:t.end]; t.kind == atEnd || t.kind == notAToken || text == "(" || text == "." || text == "=" {
			return 0
		}
	}
	end, t := t.end, l.next()
	if text := code[t.start:t.end]; text == "with" || text == "assert" && !t.newline {
		for t.kind != atEnd && t.kind != notAToken && code[t.start:t.end] != "}" {
			t = l.next()
		}
		end, t = t.end, l.next()
	}
	if code[t.start:t.end] == ";" {
		end = t.end
	}
	return end
}
