package lint

import "gaol/internal/snippet"

// functionFrom reads a function from the word function or async on.
func (p *parser) functionFrom() *node {
	n := p.node(function)
	c := context{function: true, async: p.accept("async")}
	p.expect("function")
	c.generator = p.accept("*")
	if p.tok.Kind == snippet.Word {
		n.id = p.word(binding)
	}
	p.functionRest(n, c)
	return n
}

// functionRest reads the parameters and the body.
func (p *parser) functionRest(n *node, c context) {
	p.inside(c, func() {
		n.add(p.arguments()...)
		n.add(p.block())
	})
}

// arrowBody reads an arrow function from its arrow on.
func (p *parser) arrowBody(n *node, async bool) *node {
	p.expect("=>")
	p.enter()
	defer p.leave()
	p.inside(context{function: true, async: async}, func() {
		if p.is("{") {
			n.add(p.block())
		} else {
			n.add(p.assignment())
		}
	})
	return n
}

func (p *parser) class() *node {
	n := p.node(class)
	p.expect("class")
	if p.tok.Kind == snippet.Word && !p.is("extends") {
		n.id = p.word(binding)
	}
	if p.accept("extends") {
		n.add(p.postfix())
	}
	p.enter()
	defer p.leave()
	p.bracketed("{", "}", func() {
		for p.more("}") {
			if !p.accept(";") {
				n.add(p.classMember())
			}
		}
	})
	return n
}

func (p *parser) classMember() *node {
	if _, next := p.peek(); p.is("static") && next == "{" {
		p.next()
		n := p.node(function)
		p.inside(context{function: true}, func() { n.add(p.block()) })
		return n
	}
	n, c := p.propertyKey()
	switch {
	case p.is("("):
		p.method(n, c)
	case p.accept("="):
		p.inside(context{function: true}, func() { n.add(p.assignment()) })
	}
	p.accept(";")
	return n
}

func (p *parser) object() *node {
	p.enter()
	defer p.leave()
	n := p.node(object)
	p.bracketed("{", "}", func() {
		for p.more("}") {
			n.add(p.objectMember())
			if !p.accept(",") && !p.is("}") {
				p.fail()
			}
		}
	})
	return n
}

func (p *parser) objectMember() *node {
	if p.is("...") {
		return p.element()
	}
	n, c := p.propertyKey()
	switch {
	case p.is("("):
		p.method(n, c)
	case p.accept(":"):
		n.add(p.assignment())
	default: // {a} or, in patterns, {a = 1}
		value := &node{kind: ident, at: n.at, start: n.start, name: n.name}
		if p.is("=") {
			value = &node{kind: assign, at: n.at, start: n.start, name: "=", kids: []*node{value}}
			p.next()
			value.add(p.assignment())
		}
		n.add(value)
	}
	return n
}

// propertyKey reads the key of a property or method, and the modifiers before it.
func (p *parser) propertyKey() (*node, context) {
	n := p.node(property)
	c := context{function: true}
	for p.is("static", "async", "get", "set", "accessor") && p.isModifier() {
		c.async = p.is("async")
		p.next()
	}
	c.generator = p.accept("*")
	n.at, n.start = p.tok.Start, p.tok.Start
	switch {
	case p.is("["):
		p.bracketed("[", "]", func() { n.key = p.assignment() })
	case p.tok.Kind == snippet.Quoted, p.tok.Kind == snippet.Number:
		n.key = p.literal()
	default:
		n.name = p.word(property).name
	}
	return n, c
}

// isModifier reports whether a key follows the current word; otherwise the word is the key.
func (p *parser) isModifier() bool {
	after, next := p.peek()
	switch after.Kind {
	case snippet.Word, snippet.Quoted, snippet.Number:
		return true
	}
	return next == "[" || next == "*"
}

func (p *parser) method(n *node, c context) {
	f := p.node(function)
	p.functionRest(f, c)
	n.add(f)
}
