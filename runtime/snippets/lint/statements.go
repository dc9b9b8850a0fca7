package lint

import "gaol/internal/snippet"

func (p *parser) statement() *node {
	p.enter()
	defer p.leave()
	switch {
	case p.is("{"):
		return p.block()
	case p.accept(";"):
		return nil
	case p.tok.Kind != snippet.Word:
		return p.expressionStatement()
	}
	if read := p.keyword(); read != nil {
		return read()
	}
	if after, next := p.peek(); next == ":" || p.declares(after, next) {
		return p.wordStatement(next)
	}
	return p.expressionStatement()
}

// keyword returns the function that reads statements that start with the current word, if only one
// kind of statement can.
func (p *parser) keyword() func() *node {
	switch p.text() {
	case "var", "const":
		return p.declarationStatement
	case "function", "class":
		return p.declare
	case "if", "while":
		return p.conditionalStatement
	case "with":
		return p.with
	case "for":
		return p.forLoop
	case "do":
		return p.doLoop
	case "switch":
		return p.switchStatement
	case "try":
		return p.try
	case "return", "throw", "break", "continue", "debugger":
		return p.jump
	case "export":
		return p.export
	}
	return nil
}

// declares reports whether the current word, which may be a name elsewhere, starts a
// declaration: let, using, await using, import, async function.
func (p *parser) declares(after snippet.Token, next string) bool {
	switch p.text() {
	case "let":
		return after.Kind == snippet.Word && !operators[next] && (next != "of" || !p.noIn) || next == "[" || next == "{"
	case "using":
		return after.Kind == snippet.Word && !after.Newline && !operators[next] && (next != "of" || !p.noIn)
	case "await":
		return next == "using" && !after.Newline && p.usingFollows()
	case "import":
		return next != "(" && next != "."
	case "async":
		return next == "function" && !after.Newline
	}
	return false
}

// usingFollows reports whether a name follows await using.
func (p *parser) usingFollows() bool {
	ahead := *p.tokens
	ahead.Next()
	name := ahead.Next()
	return name.Kind == snippet.Word && !name.Newline && !operators[p.code[name.Start:name.End]]
}

// wordStatement reads a statement for which declares is true, or a label.
func (p *parser) wordStatement(next string) *node {
	switch {
	case next == ":":
		p.next()
		p.next()
		return p.statement()
	case p.is("import"):
		return p.importDeclaration()
	case p.is("async"):
		return p.declare()
	}
	return p.declarationStatement()
}

func (p *parser) expressionStatement() *node {
	n := p.expression()
	p.semicolon()
	return n
}

func (p *parser) semicolon() {
	if !p.accept(";") && !p.is("}") && p.tok.Kind != snippet.AtEnd && !p.tok.Newline {
		p.fail()
	}
}

func (p *parser) block() *node {
	n := p.node(block)
	p.bracketed("{", "}", func() {
		for p.more("}") {
			n.add(p.statement())
		}
	})
	return n
}

// declare reads the declaration of a function or class.
func (p *parser) declare() *node {
	var n *node
	if p.is("class") {
		n = p.class()
	} else {
		n = p.functionFrom()
	}
	n.declares = n.id != nil
	return n
}

func (p *parser) declarationStatement() *node {
	n := p.declaration()
	p.semicolon()
	return n
}

// declaration reads var, let, const or using, and its declarators.
func (p *parser) declaration() *node {
	n := p.node(declaration)
	if p.accept("await") {
		n.name = "using"
	}
	n.name = p.text()
	p.next()
	for {
		d := p.node(declarator)
		d.add(p.operand())
		if p.accept("=") {
			d.add(p.assignment())
		}
		n.add(d)
		if !p.accept(",") {
			return n
		}
	}
}

// jump reads return, throw, break, continue and debugger.
func (p *parser) jump() *node {
	n := p.node(other)
	named := p.is("break", "continue")
	p.next()
	switch {
	case p.tok.Newline:
	case named && p.tok.Kind == snippet.Word:
		p.next() // a label
	case p.more(";") && !p.is("}"):
		n.add(p.expression())
	}
	p.semicolon()
	return n
}

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
