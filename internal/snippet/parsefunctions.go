package snippet

// functionFrom reads a function from async or function on.
func (p *parser) functionFrom() *Node {
	n := p.node(Function)
	async := p.accept("async")
	p.expect("function")
	generator := p.accept("*")
	if p.tok.kind == word {
		n.Key = p.binding(Binding)
	}
	p.body(n, context{async: async, generator: generator, function: true})
	return n
}

// body reads the parameters and the body of a function.
func (p *parser) body(n *Node, c context) {
	p.enter()
	defer p.leave()
	p.inside(c, func() {
		p.arguments(n)
		p.lastBody = p.block(n)
	})
}

// inside reads code in the context of a function.
func (p *parser) inside(c context, read func()) {
	outer := p.context
	p.context = c
	read()
	p.context = outer
}

// binding reads a name that is declared.
func (p *parser) binding(k NodeKind) *Node {
	n := p.named(k)
	p.next()
	return n
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

// element reads an expression, or ... and one.
func (p *parser) element() *Node {
	if !p.is("...") {
		return p.assignment(false)
	}
	n := p.node(Spread)
	p.next()
	return n.add(p.assignment(false))
}

// object reads an object or an object pattern.
func (p *parser) object() *Node {
	n := p.node(Object)
	p.expect("{")
	p.list("}", func() {
		if p.is("...") {
			n.add(p.element())
		} else {
			n.add(p.property())
		}
	})
	return n
}

func (p *parser) property() *Node {
	c := p.modifiers("async", "get", "set")
	n := p.node(Property)
	p.key(n)
	switch {
	case p.is("("):
		p.method(n, c)
	case p.accept(":"):
		n.add(p.assignment(false))
	default: // {a} or, in patterns, {a = 1}
		value := n.shorthand()
		if p.accept("=") {
			value = enclosing(Assign, "=", value).add(p.assignment(false))
		}
		n.add(value)
	}
	return n
}

func (p *parser) method(n *Node, c context) {
	f := p.node(Function)
	p.body(f, c)
	n.add(f)
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
func (p *parser) key(n *Node) {
	switch {
	case p.accept("["):
		n.Key = p.assignment(false)
		p.expect("]")
	case p.tok.kind == quoted || p.tok.kind == number:
		n.Key = p.literal()
	case p.tok.kind == word:
		n.Name = unescape(p.text())
		p.next()
	default:
		p.fail()
	}
}

// class reads a class from its keyword on.
func (p *parser) class() *Node {
	depth := p.depth
	defer func() { p.depth = depth }()
	n := p.node(Class)
	p.enter()
	p.next()
	if p.tok.kind == word && !p.is("extends") {
		n.Key = p.binding(Binding)
	}
	if p.accept("extends") {
		super, _ := p.unary(false)
		n.add(super)
	}
	p.expect("{")
	for !p.failed && !p.is("}") {
		if !p.accept(";") {
			n.add(p.classMember())
		}
	}
	p.expect("}")
	return n
}

func (p *parser) classMember() *Node {
	c := p.modifiers("static", "async", "get", "set") // V8 lacks accessor: esbuild translates it
	if p.is("{") {
		n := p.node(Function)
		p.inside(context{function: true}, func() { p.block(n) })
		return n
	}
	n := p.node(Property)
	p.key(n)
	if p.is("(") {
		p.method(n, c)
		return n
	}
	if p.accept("=") {
		p.inside(context{function: true}, func() { n.add(p.assignment(false)) })
	}
	p.semicolon()
	return n
}
