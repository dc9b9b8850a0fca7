package lint

// head reads an expression in parentheses.
func (p *parser) head() (n *node) {
	p.bracketed("(", ")", func() { n = p.expression() })
	return n
}

// conditionalStatement reads if and while.
func (p *parser) conditionalStatement() *node {
	n := p.node(other)
	isIf := p.is("if")
	p.next()
	n.add(p.head(), p.statement())
	if isIf && p.accept("else") {
		n.add(p.statement())
	}
	return n
}

func (p *parser) with() *node {
	n := p.node(with)
	p.next()
	return n.add(p.head(), p.statement())
}

func (p *parser) doLoop() *node {
	n := p.node(other)
	p.next()
	n.add(p.statement())
	p.expect("while")
	n.add(p.head())
	p.accept(";")
	return n
}

func (p *parser) forLoop() *node {
	n := p.node(block)
	p.next()
	p.accept("await")
	p.expect("(")
	n.add(p.loopStart())
	if p.accept("of") || p.accept("in") {
		n.add(p.expression())
	} else {
		p.expect(";")
		if !p.is(";") {
			n.add(p.expression())
		}
		p.expect(";")
		if !p.is(")") {
			n.add(p.expression())
		}
	}
	p.expect(")")
	return n.add(p.statement())
}

// loopStart reads the part before the first semicolon, of or in. An assignment to a pattern
// need not have an initial value there.
func (p *parser) loopStart() (n *node) {
	if p.is(";") {
		return nil
	}
	p.noIn = true
	defer func() { p.noIn = false }()
	after, next := p.peek()
	if p.is("var", "const") || p.is("let", "using", "await") && p.declares(after, next) {
		return p.declaration()
	}
	n = p.expression()
	if p.is("of", "in") {
		return (&node{kind: assign, at: n.at, start: n.start, name: "="}).add(n)
	}
	return n
}

func (p *parser) switchStatement() *node {
	n := p.node(other)
	p.next()
	n.add(p.head())
	cases := p.node(block)
	p.bracketed("{", "}", func() {
		for p.more("}") {
			if p.accept("case") {
				cases.add(p.expression())
				p.expect(":")
			} else if p.accept("default") {
				p.expect(":")
			}
			for p.more("}") && !p.is("case", "default") {
				cases.add(p.statement())
			}
		}
	})
	return n.add(cases)
}

func (p *parser) try() *node {
	n := p.node(other)
	p.next()
	n.add(p.block())
	if p.is("catch") {
		c := p.node(catchBlock)
		p.next()
		if p.is("(") {
			d := p.node(declarator)
			d.add(p.head())
			c.add(d)
		}
		n.add(c.add(p.block()))
	}
	if p.accept("finally") {
		n.add(p.block())
	}
	return n
}
