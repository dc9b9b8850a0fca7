package snippet

// importStatement reads a static import.
func (p *parser) importStatement(s *statement) {
	s.kind = importing
	s.node = p.node(ImportFrom)
	p.next()
	if p.tok.kind != quoted {
		p.importClause(s)
		p.expect("from")
	}
	p.moduleName(s)
	p.semicolon()
}

// importClause reads the names that an import binds: a, * as a, {a as b} or two of these.
func (p *parser) importClause(s *statement) {
	if (p.isAny("defer", "source") || p.types && p.is("type")) && p.isPhase() {
		p.next()
	}
	if p.tok.kind == word {
		p.importedName(s, "default")
		if !p.accept(",") {
			return
		}
	}
	if p.accept("*") {
		p.expect("as")
		p.importedName(s, "*")
		return
	}
	p.expect("{")
	p.list("}", func() {
		if _, next := p.peek(); p.types && p.is("type") && next != "as" && next != "," && next != "}" {
			p.next()
		}
		if imported := p.text(); p.peekIs("as") {
			p.next()
			p.next()
			p.importedName(s, imported)
		} else {
			p.importedName(s, imported)
		}
	})
}

// importedName reads the name that an import binds.
func (p *parser) importedName(s *statement, imported string) {
	s.bindings = append(s.bindings, binding{imported, p.text()})
	s.node.add(p.binding(Binding))
}

// isPhase reports whether the word after import is a phase and not a binding: import defer
// * as a, import source a, import type {a}.
func (p *parser) isPhase() bool {
	l := p.lexer
	after := l.next()
	behind := l.next()
	next := p.code[after.start:after.end]
	return next == "*" || next == "{" || after.kind == word && (next != "from" || behind.kind == word)
}

// moduleName reads the quoted name of a module and its attributes.
func (p *parser) moduleName(s *statement) {
	if p.tok.kind != quoted {
		p.fail()
	}
	s.from = span{p.tok.start, p.tok.end}
	module := p.literal()
	s.node.At, s.node.Name = module.At, module.Name
	if p.is("with") || p.is("assert") && !p.tok.newline {
		p.next()
		s.with.start = p.tok.start
		p.object()
		s.with.end = p.last
	}
}

func (p *parser) exportStatement(s *statement) {
	s.kind = exporting
	p.next()
	switch {
	case p.accept("default"):
		p.exportDefault(s)
	case p.accept("*"):
		if p.accept("as") {
			p.next()
		}
		p.expect("from")
		s.node = p.node(ImportFrom)
		p.moduleName(s)
		p.semicolon()
	case p.accept("{"):
		p.exportList(s)
	default:
		s.value.start = p.tok.start
		p.exporting = true
		inner := p.statement()
		p.exporting = false
		s.declares, s.node = inner.kind, inner.node
		s.value.end = p.last
	}
}

func (p *parser) exportList(s *statement) {
	before := len(p.listed)
	p.list("}", func() {
		b := binding{p.text(), p.text()}
		p.next()
		if p.accept("as") {
			b.imported = p.text()
			p.next()
		}
		p.listed = append(p.listed, b)
	})
	if p.accept("from") {
		p.listed = p.listed[:before]
		s.node = p.node(ImportFrom)
		p.moduleName(s)
	}
	p.semicolon()
}

// exportDefault reads the rest of export default. Functions and classes are declarations
// there, but need no name.
func (p *parser) exportDefault(s *statement) {
	s.kind = defaulting
	s.value.start = p.tok.start
	after, next := p.peek()
	switch {
	case p.is("function"), p.is("async") && !after.newline && next == "function":
		s.declares = function
		p.functionStatement(s)
		s.value.end = p.last
	case p.is("class"):
		s.declares = class
		p.classStatement(s)
		s.value.end = p.last
	default:
		s.declares = expression
		s.node = p.assignment(false)
		s.value.end = p.last
		p.semicolon()
	}
	s.body = p.lastBody
}
