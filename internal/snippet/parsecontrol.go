package snippet

func (p *parser) ifStatement(s *statement) {
	s.kind = branching
	p.next()
	p.condition()
	s.parts = [][]statement{{p.statement()}}
	if p.accept("else") {
		s.parts = append(s.parts, []statement{p.statement()})
	}
}

// condition reads an expression in parentheses.
func (p *parser) condition() {
	p.expect("(")
	p.sequence(false)
	p.expect(")")
}

func (p *parser) whileStatement() {
	p.next()
	p.condition()
	p.statement()
}

func (p *parser) doStatement() {
	p.next()
	p.statement()
	p.expect("while")
	p.condition()
	p.accept(";") // optional after do…while, even on the same line
}

func (p *parser) forStatement() {
	p.next()
	if p.accept("await") {
		p.noteAwait()
	}
	p.expect("(")
	p.forHead()
	p.expect(")")
	p.statement()
}

func (p *parser) forHead() {
	after, _ := p.peek()
	switch {
	case p.is(";"):
	case p.is("using") && p.peekIs("of"): // a variable named using
		p.next()
	case p.isAny("var", "const"), p.tok.kind == word && p.declares(p.text(), after):
		p.declarations(true)
	default:
		start := p.tok.start
		p.sequence(true)
		if p.isAny("of", "in") {
			p.noteAssigned(start)
		}
	}
	if p.accept("of") || p.accept("in") {
		p.sequence(false)
		return
	}
	p.expect(";")
	if !p.is(";") {
		p.sequence(false)
	}
	p.expect(";")
	if !p.is(")") {
		p.sequence(false)
	}
}

func (p *parser) tryStatement(s *statement) {
	s.kind = branching
	p.next()
	s.parts = [][]statement{p.block()}
	if p.accept("catch") {
		if p.accept("(") {
			p.bindingTarget()
			p.expect(")")
		}
		s.parts = append(s.parts, p.block())
	}
	if p.accept("finally") {
		p.block()
	}
}

func (p *parser) switchStatement(s *statement) {
	s.kind = branching
	p.next()
	p.condition()
	p.expect("{")
	for !p.failed && !p.is("}") {
		if !p.accept("default") {
			p.expect("case")
			p.sequence(false)
		}
		p.expect(":")
		s.parts = append(s.parts, p.clause())
	}
	p.expect("}")
}

// clause reads the statements of a case without a final break: break yields no value, so the
// result is the value of the statement before it.
func (p *parser) clause() []statement {
	var list []statement
	ends := false
	for p.tok.kind != atEnd && !p.isAny("}", "case", "default") {
		ends = p.is("break")
		list = append(list, p.statement())
	}
	if ends && len(list) > 0 {
		list = list[:len(list)-1]
	}
	return list
}

// jumpStatement reads return, throw, break, continue or debugger with its operand.
func (p *parser) jumpStatement() {
	if p.is("return") && !p.function {
		p.topReturn = true
	}
	p.next()
	if p.tok.kind != atEnd && !p.tok.newline && !p.isAny(";", "}") {
		p.sequence(false)
	}
	p.semicolon()
}
