package snippet

// importStatement reads a static import.
func (r *reader) importStatement(s *statement) {
	s.kind = importing
	r.next()
	if r.tok.kind != quoted {
		r.importClause(s)
		r.expect("from")
	}
	r.moduleName(s)
	r.semicolon()
}

// importClause reads what an import binds: a, * as a, {a as b} or two of these.
func (r *reader) importClause(s *statement) {
	if r.isAny("defer", "source") && r.isPhase() {
		r.next()
	}
	if r.tok.kind == word {
		s.bindings = append(s.bindings, binding{"default", r.text()})
		r.bind(r.text())
		r.next()
		if !r.take(",") {
			return
		}
	}
	if r.take("*") {
		r.expect("as")
		s.bindings = append(s.bindings, binding{"*", r.text()})
		r.bind(r.text())
		r.next()
		return
	}
	r.expect("{")
	for !r.failed && !r.is("}") {
		b := binding{imported: r.text(), local: r.text()}
		r.next()
		if r.take("as") {
			b.local = r.text()
			r.next()
		}
		s.bindings = append(s.bindings, b)
		r.bind(b.local)
		if !r.is("}") {
			r.expect(",")
		}
	}
	r.expect("}")
}

// isPhase says whether the word after import isn't a binding but how to import: import
// defer * as a, import source a.
func (r *reader) isPhase() bool {
	l := r.lexer
	after := l.next()
	behind := l.next()
	return r.code[after.start:after.end] == "*" ||
		after.kind == word && (r.code[after.start:after.end] != "from" || behind.kind == word)
}

// moduleName reads the quoted name of a module and the attributes behind it.
func (r *reader) moduleName(s *statement) {
	if r.tok.kind != quoted {
		r.fail()
	}
	s.from = span{r.tok.start, r.tok.end}
	r.next()
	if r.is("with") || r.is("assert") && !r.tok.newline {
		r.next()
		s.with.start = r.tok.start
		r.object()
		s.with.end = r.last
	}
}

func (r *reader) exportStatement(s *statement) {
	s.kind = exporting
	r.next()
	switch {
	case r.take("default"):
		r.exportDefault(s)
	case r.take("*"):
		if r.take("as") {
			r.next()
		}
		r.expect("from")
		r.moduleName(s)
		r.semicolon()
	case r.take("{"):
		r.exportList(s)
	default:
		s.value.start = r.tok.start
		inner := r.statement()
		s.declares, s.name = inner.kind, inner.name
		s.value.end = r.last
	}
}

func (r *reader) exportList(s *statement) {
	for !r.failed && !r.is("}") {
		r.next()
		if r.take("as") {
			r.next()
		}
		if !r.is("}") {
			r.expect(",")
		}
	}
	r.expect("}")
	if r.take("from") {
		r.moduleName(s)
	}
	r.semicolon()
}

// exportDefault reads what is behind the two words. A function and a class are
// declarations there, which need no name.
func (r *reader) exportDefault(s *statement) {
	s.kind = defaulting
	s.value.start = r.tok.start
	after := r.ahead()
	switch {
	case r.is("function"), r.is("async") && !after.newline && r.code[after.start:after.end] == "function":
		s.declares, s.callable = function, true
		s.name = r.functionFrom()
		s.value.end = r.last
	case r.is("class"):
		s.declares = class
		s.name = r.class()
		s.value.end = r.last
	default:
		s.declares = expression
		s.callable = r.assignment(false)
		s.value.end = r.last
		r.semicolon()
	}
	s.body = r.inner
}
