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
	return p.body(n, context{async: async, generator: generator, function: true})
}

// body reads the parameters and the body of a function.
func (p *parser) body(n *Node, c context) *Node {
	p.enter()
	defer p.leave()
	p.inside(c, func() { p.arguments(n).add(p.block()) })
	return n
}

// binding reads a name.
func (p *parser) binding(k NodeKind) *Node {
	n := p.named(k)
	n.End = p.tok.end
	p.next()
	return n
}

func (p *parser) property() *Node {
	c := p.modifiers("async", "get", "set")
	n := p.node(Property)
	p.key(n)
	switch {
	case p.is("("):
		n.add(p.body(p.node(Function), c))
	case p.accept(":"):
		n.add(p.assignment())
	default: // {a} or, in patterns, {a = 1}
		value := &Node{Kind: Identifier, shorthand: true, At: n.At, Start: n.Start, End: p.last, Name: n.Name}
		if p.accept("=") {
			value = enclosing(Assign, "=", value).add(p.assignment())
		}
		n.add(value)
	}
	return n
}

// modifiers reads the words and the asterisk before a member's name, unless a word is the
// name itself.
func (p *parser) modifiers(words ...string) context {
	c := context{function: true}
	for p.isAny(words...) {
		after, next := p.peek(1)
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
		n.Key = p.enclosed(p.assignment)
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
	p.enter()
	n := p.keyword(Class)
	if p.tok.kind == word && !p.is("extends") {
		n.Key = p.binding(Binding)
	}
	if p.accept("extends") {
		n.add(p.unary())
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
		p.inside(context{function: true}, func() { n.add(p.block()) })
		return n
	}
	n := p.node(Property)
	p.key(n)
	if p.is("(") {
		return n.add(p.body(p.node(Function), c))
	}
	if p.accept("=") {
		p.inside(context{function: true}, func() { n.add(p.assignment()) })
	}
	p.semicolon()
	return n
}
