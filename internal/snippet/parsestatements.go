package snippet

import "cmp"

// statements reads statements up to a closing brace.
func (p *parser) statements(of *Node) {
	for p.tok.kind != atEnd && !p.is("}") {
		of.add(p.statement())
	}
}

func (p *parser) statement() *Node {
	p.enter()
	defer p.leave()
	start := p.tok.start
	n := p.anyStatement()
	n.Start = start
	n.End = cmp.Or(n.End, p.last)
	return n
}

func (p *parser) anyStatement() *Node {
	if p.tok.kind != word && p.tok.kind != punctuator {
		return p.expressionStatement()
	}
	switch p.text() {
	case ";":
		return p.keyword(Empty)
	case "{":
		if p.depth == 1 {
			p.lastBlock = p.tok.start
		}
		return p.block()
	case "if":
		n := p.keyword(Branch).add(p.condition(), p.statement())
		if p.accept("else") {
			n.add(p.statement())
		}
		return n
	case "for":
		return p.forStatement()
	case "while":
		return p.keyword(Other).add(p.condition(), p.statement())
	case "with":
		return p.keyword(With).add(p.condition(), p.statement())
	case "do":
		return p.doStatement()
	case "try":
		return p.tryStatement()
	case "switch":
		return p.switchStatement()
	case "return", "throw", "break", "continue", "debugger":
		return p.jumpStatement()
	case "export":
		return p.exportStatement()
	}
	return p.nameStatement()
}

// keyword reads the token that starts a statement.
func (p *parser) keyword(k NodeKind) *Node {
	n := p.node(k)
	p.next()
	return n
}

// nameStatement reads a statement that starts with a word that may be a name.
func (p *parser) nameStatement() *Node {
	after, next := p.peek(1)
	switch {
	case p.tok.kind == word && after.kind == punctuator && next == ":":
		n := p.keyword(Branch)
		p.next()
		return n.add(p.statement())
	case p.is("import") && next != "(" && next != ".":
		return p.importStatement()
	case p.isFunction():
		return p.declared(p.functionFrom())
	case p.is("class"):
		return p.declared(p.class())
	case p.declares():
		n := p.declarations()
		p.semicolon()
		return n
	}
	return p.expressionStatement()
}

// declared marks a function or class as a declaration. That of export default need not have a name.
func (p *parser) declared(n *Node) *Node {
	n.declares = n.Key != nil
	return n
}

// isFunction reports whether a function starts here.
func (p *parser) isFunction() bool {
	after, next := p.peek(1)
	return p.is("function") || p.is("async") && next == "function" && !after.newline
}

// declares reports whether a declaration of variables starts here.
func (p *parser) declares() bool {
	after, next := p.peek(1)
	switch {
	case p.isAny("var", "const"), p.is("let") && (next == "[" || next == "{"):
		return true
	case p.is("await") && next == "using" && !after.newline:
		after, next = p.peek(2)
	case !p.isAny("let", "using"):
		return false
	}
	return after.kind == word && (p.is("let") || !after.newline) && next != "in" && next != "instanceof"
}

func (p *parser) expressionStatement() *Node {
	n := p.node(Expression)
	n.add(p.sequence())
	n.End = p.last
	p.semicolon()
	return n
}

// declarations reads names or patterns and their initial values.
func (p *parser) declarations() *Node {
	n := p.named(Declaration)
	if p.accept("await") {
		p.noteAwait()
		p.expect("using")
	} else {
		p.next()
	}
	for {
		d := p.node(Declarator).add(p.bindingTarget())
		if p.accept("=") {
			d.add(p.assignment())
		}
		d.End = p.last
		n.add(d)
		if !p.accept(",") {
			return n
		}
	}
}

// bindingTarget reads a name or a pattern that is bound.
func (p *parser) bindingTarget() *Node {
	if p.tok.kind == word {
		return p.binding(Identifier)
	}
	return p.arrayOrObject()
}

// block reads statements in braces.
func (p *parser) block() *Node {
	n := p.node(Block)
	p.expect("{")
	p.statements(n)
	p.expect("}")
	n.End = p.last
	return n
}

// condition reads an expression in parentheses.
func (p *parser) condition() *Node {
	p.expect("(")
	n := p.sequence()
	p.expect(")")
	return n
}

func (p *parser) doStatement() *Node {
	n := p.keyword(Other).add(p.statement())
	p.expect("while")
	n.add(p.condition())
	p.accept(";") // optional after do…while, even on the same line
	return n
}

func (p *parser) forStatement() *Node {
	n := p.keyword(For)
	if p.accept("await") {
		p.noteAwait()
	}
	p.expect("(")
	p.forHead(n)
	p.expect(")")
	return n.add(p.statement())
}

func (p *parser) forHead(n *Node) {
	var head *Node
	p.noIn = true
	switch {
	case p.is(";"):
	case p.is("using") && p.peekIs("of"): // a variable named using
		head = p.binding(Identifier)
	case p.tok.kind == word && p.declares():
		head = p.declarations()
	default:
		head = p.sequence()
	}
	p.noIn = false
	if p.isAny("of", "in") {
		if head.Kind != Declaration {
			head = enclosing(Assign, "=", head)
		}
		p.next()
		n.add(head, p.sequence())
		return
	}
	n.add(head)
	p.expect(";")
	if !p.is(";") {
		n.add(p.sequence())
	}
	p.expect(";")
	if !p.is(")") {
		n.add(p.sequence())
	}
}

func (p *parser) tryStatement() *Node {
	n := p.keyword(Branch).add(p.block())
	if p.is("catch") {
		handler := p.keyword(CatchBlock)
		if p.accept("(") {
			handler.add(p.node(Declarator).add(p.bindingTarget()))
			p.expect(")")
		}
		n.add(handler.add(p.block()))
	}
	if p.is("finally") {
		n.add(p.keyword(Other).add(p.block()))
	}
	return n
}

func (p *parser) switchStatement() *Node {
	n := p.keyword(Branch).add(p.condition())
	cases := p.node(Cases)
	p.expect("{")
	for !p.failed && !p.is("}") {
		c := p.node(Case)
		if !p.accept("default") {
			p.expect("case")
			c.add(p.sequence())
		}
		p.expect(":")
		for p.tok.kind != atEnd && !p.isAny("}", "case", "default") {
			c.add(p.statement())
		}
		cases.add(c)
	}
	p.expect("}")
	return n.add(cases)
}

// jumpStatement reads return, throw, break, continue or debugger with its operand.
func (p *parser) jumpStatement() *Node {
	if p.is("return") && !p.function {
		p.topReturn = true
	}
	n := p.named(Other)
	labeled := p.isAny("break", "continue")
	p.next()
	if p.tok.kind != atEnd && !p.tok.newline && !p.isAny(";", "}") {
		operand := p.sequence()
		if !labeled {
			n.add(operand)
		}
	}
	p.semicolon()
	return n
}
