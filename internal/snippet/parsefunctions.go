package snippet

// functionFrom reads a function from async or function on, and returns its name.
func (p *parser) functionFrom() (name string) {
	async := p.accept("async")
	p.expect("function")
	generator := p.accept("*")
	if p.tok.kind == word {
		name = p.text()
		p.bindName(name)
		p.next()
	}
	p.body(context{async: async, generator: generator, function: true})
	return name
}

// body reads the parameters and the body of a function.
func (p *parser) body(c context) {
	p.enter()
	defer p.leave()
	outer := p.context
	p.context = c
	names := p.beginNames()
	p.arguments()
	p.bindNames(names)
	p.lastBody = p.block()
	p.context = outer
}

// object reads an object or an object pattern.
func (p *parser) object() {
	p.expect("{")
	for !p.failed && !p.is("}") {
		if p.accept("...") {
			p.assignment(false)
		} else {
			p.property()
		}
		if !p.is("}") {
			p.expect(",")
		}
	}
	p.expect("}")
}

func (p *parser) property() {
	c := p.modifiers("async", "get", "set")
	name := p.text()
	p.key()
	switch {
	case p.is("("):
		p.body(c)
	case p.accept(":"):
		p.assignment(false)
	case p.accept("="):
		p.useName(name)
		p.assignment(false)
	default:
		p.useName(name)
	}
}

// modifiers reads the words and the asterisk before a member's name, unless a word is the
// name itself.
func (p *parser) modifiers(words ...string) context {
	c := context{function: true}
	for p.isAny(words...) {
		after := p.peek()
		next := p.code[after.start:after.end]
		named := after.kind == word || after.kind == quoted || after.kind == number || after.kind == private ||
			next == "[" || next == "*" || next == "{" && p.is("static")
		if !named || after.newline && p.isAny("async", "accessor") {
			break
		}
		c.async = c.async || p.is("async")
		p.next()
	}
	c.generator = p.accept("*")
	return c
}

// key reads a member's name.
func (p *parser) key() {
	switch {
	case p.accept("["):
		p.assignment(false)
		p.expect("]")
	case p.tok.kind == word || p.tok.kind == quoted || p.tok.kind == number || p.tok.kind == private:
		p.next()
	default:
		p.fail()
	}
}

// class reads a class from its keyword on, and returns its name.
func (p *parser) class() (name string) {
	depth := p.cost.depth
	defer func() { p.cost.depth = depth }()
	p.enter()
	p.next()
	if p.tok.kind == word && !p.is("extends") {
		name = p.text()
		p.bindName(name)
		p.next()
	}
	if p.accept("extends") {
		p.prefixOperators()
		p.operand(false)
		p.postfixes()
	}
	p.expect("{")
	for !p.failed && !p.is("}") {
		if !p.accept(";") {
			p.classMember()
		}
	}
	p.expect("}")
	return name
}

func (p *parser) classMember() {
	c := p.modifiers("static", "async", "get", "set", "accessor")
	if p.is("{") {
		outer := p.context
		p.context = context{function: true}
		p.block()
		p.context = outer
		return
	}
	p.key()
	if p.is("(") {
		p.body(c)
		return
	}
	if p.accept("=") {
		outer := p.context
		p.context = context{function: true}
		p.assignment(false)
		p.context = outer
	}
	p.semicolon()
}
