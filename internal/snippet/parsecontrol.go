package snippet

func (p *parser) ifStatement(s *statement) {
	s.kind = branching
	s.node = p.node(Other)
	p.next()
	s.node.add(p.condition())
	s.parts = [][]statement{{p.part(s.node)}}
	if p.accept("else") {
		s.parts = append(s.parts, []statement{p.part(s.node)})
	}
}

// part reads a statement that is a part of another one.
func (p *parser) part(of *Node) statement {
	s := p.statement()
	of.add(s.node)
	return s
}

// condition reads an expression in parentheses.
func (p *parser) condition() *Node {
	p.expect("(")
	n := p.sequence(false)
	p.expect(")")
	return n
}

// whileStatement reads while or with.
func (p *parser) whileStatement(s *statement) {
	s.node = p.node(Other)
	if p.is("with") {
		s.node.Kind = With
	}
	p.next()
	s.node.add(p.condition())
	p.part(s.node)
}

func (p *parser) doStatement(s *statement) {
	s.node = p.node(Other)
	p.next()
	p.part(s.node)
	p.expect("while")
	s.node.add(p.condition())
	p.accept(";") // optional after do…while, even on the same line
}

func (p *parser) forStatement(s *statement) {
	s.node = p.node(Block)
	p.next()
	if p.accept("await") {
		p.noteAwait()
	}
	p.expect("(")
	p.forHead(s.node)
	p.expect(")")
	p.part(s.node)
}

func (p *parser) forHead(n *Node) {
	after, _ := p.peek()
	switch {
	case p.is(";"):
	case p.is("using") && p.peekIs("of"): // a variable named using
		n.add(enclosing(Assign, "=", p.named(Identifier)))
		p.next()
	case p.isAny("var", "const"), p.tok.kind == word && p.declares(p.text(), after):
		n.add(p.declarations(true))
	default:
		head := p.sequence(true)
		if p.isAny("of", "in") {
			head = enclosing(Assign, "=", head)
		}
		n.add(head)
	}
	if p.accept("of") || p.accept("in") {
		n.add(p.sequence(false))
		return
	}
	p.expect(";")
	if !p.is(";") {
		n.add(p.sequence(false))
	}
	p.expect(";")
	if !p.is(")") {
		n.add(p.sequence(false))
	}
}

func (p *parser) tryStatement(s *statement) {
	s.kind = branching
	s.node = p.node(Other)
	p.next()
	s.parts = [][]statement{p.block(s.node)}
	handler := p.node(CatchBlock)
	if p.accept("catch") {
		if p.accept("(") {
			handler.add(p.node(Declarator).add(p.bindingTarget()))
			p.expect(")")
		}
		s.parts = append(s.parts, p.block(handler))
		s.node.add(handler)
	}
	if p.accept("finally") {
		p.block(s.node)
	}
}

func (p *parser) switchStatement(s *statement) {
	s.kind = branching
	s.node = p.node(Other)
	p.next()
	s.node.add(p.condition())
	cases := p.node(Block)
	s.node.add(cases)
	p.expect("{")
	for !p.failed && !p.is("}") {
		if !p.accept("default") {
			p.expect("case")
			cases.add(p.sequence(false))
		}
		p.expect(":")
		s.parts = append(s.parts, p.clause(cases))
	}
	p.expect("}")
}

// clause reads the statements of a case without a final break: break yields no value, so the
// result is the value of the statement before it.
func (p *parser) clause(cases *Node) []statement {
	var list []statement
	ends := false
	for p.tok.kind != atEnd && !p.isAny("}", "case", "default") {
		ends = p.is("break")
		list = append(list, p.part(cases))
	}
	if ends && len(list) > 0 {
		list = list[:len(list)-1]
	}
	return list
}

// jumpStatement reads return, throw, break, continue or debugger with its operand.
func (p *parser) jumpStatement(s *statement) {
	if p.is("return") && !p.function {
		p.topReturn = true
	}
	s.node = p.node(Other)
	labeled := p.isAny("break", "continue")
	p.next()
	if p.tok.kind != atEnd && !p.tok.newline && !p.isAny(";", "}") {
		operand := p.sequence(false)
		if !labeled {
			s.node.add(operand)
		}
	}
	p.semicolon()
}
