package snippet

// functionFrom reads a function from async or function on, and returns its name.
func (p *parser) functionFrom() (name string) {
	async := p.accept("async")
	p.expect("function")
	generator := p.accept("*")
	if p.tok.kind == word {
		name = p.bindingName()
	}
	nameEnd := p.last
	p.body(context{async: async, generator: generator, function: true})
	p.nameEnd = nameEnd
	return name
}

// body reads the parameters and the body of a function.
func (p *parser) body(c context) {
	p.enter()
	defer p.leave()
	p.inside(c, func() {
		names := p.beginNames()
		p.arguments()
		p.bindNames(names)
		p.lastBody = p.block()
	})
}

// inside reads code in the context of a function.
func (p *parser) inside(c context, read func()) {
	outer := p.context
	p.context = c
	read()
	p.context = outer
}

// bindingName reads a name that is declared.
func (p *parser) bindingName() string {
	name := p.text()
	p.bindName(name)
	p.next()
	return name
}

// list reads elements separated by commas, and the end.
func (p *parser) list(end string, element func()) {
	for !p.failed && !p.is(end) {
		element()
		if !p.is(end) {
			p.expect(",")
		}
	}
	p.expect(end)
}

// object reads an object or an object pattern.
func (p *parser) object() {
	p.expect("{")
	p.list("}", func() {
		if p.accept("...") {
			p.assignment(false)
		} else {
			p.property()
		}
	})
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
		after, next := p.peek()
		named := after.kind == word || after.kind == quoted || after.kind == number ||
			next == "[" || next == "*" || next == "{" && p.is("static")
		if !named || after.newline && p.is("async") {
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
	case p.tok.kind == word || p.tok.kind == quoted || p.tok.kind == number:
		p.next()
	default:
		p.fail()
	}
}

// class reads a class from its keyword on, and returns its name.
func (p *parser) class() (name string) {
	depth := p.depth
	defer func() { p.depth = depth }()
	p.enter()
	p.next()
	if p.tok.kind == word && !p.is("extends") {
		name = p.bindingName()
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
	c := p.modifiers("static", "async", "get", "set") // V8 lacks accessor: esbuild translates it
	if p.is("{") {
		p.inside(context{function: true}, func() { p.block() })
		return
	}
	p.key()
	if p.is("(") {
		p.body(c)
		return
	}
	if p.accept("=") {
		p.inside(context{function: true}, func() { p.assignment(false) })
	}
	p.semicolon()
}
