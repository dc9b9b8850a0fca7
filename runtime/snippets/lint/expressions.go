package lint

import "gaol/internal/snippet"

var assignments = setOf("=", "+=", "-=", "*=", "/=", "%=", "**=", "<<=", ">>=", ">>>=", "&=", "|=", "^=", "&&=", "||=", "??=")

var operators = setOf("||", "&&", "??", "|", "^", "&", "==", "!=", "===", "!==", "<", ">", "<=", ">=", "instanceof", "in",
	"<<", ">>", ">>>", "+", "-", "*", "/", "%", "**")

func setOf(list ...string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, text := range list {
		set[text] = true
	}
	return set
}

// isOneOf reports whether the current token is in a set.
func (p *parser) isOneOf(set map[string]bool) bool {
	return (p.tok.Kind == snippet.Punctuator || p.tok.Kind == snippet.Word) && set[p.text()]
}

// expression reads expressions with commas.
func (p *parser) expression() *node {
	first := p.assignment()
	if !p.is(",") {
		return first
	}
	n := &node{kind: sequence, at: first.at, start: first.start}
	n.add(first)
	for p.accept(",") {
		n.add(p.assignment())
	}
	return n
}

func (p *parser) assignment() *node {
	p.enter()
	defer p.leave()
	if p.generator && p.is("yield") {
		return p.yield()
	}
	left := p.conditional()
	if !p.isOneOf(assignments) {
		return left
	}
	n := &node{kind: assign, at: left.at, start: left.start, name: p.text()}
	p.next()
	return n.add(left, p.assignment())
}

func (p *parser) yield() *node {
	n := p.node(other)
	p.next()
	p.accept("*")
	if p.tok.Kind == snippet.AtEnd || p.tok.Newline || p.is(")", "]", "}", ",", ";", ":") {
		return n
	}
	return n.add(p.assignment())
}

func (p *parser) conditional() *node {
	test := p.binary()
	if !p.is("?") {
		return test
	}
	n := &node{kind: conditional, at: test.at, start: test.start}
	n.add(test)
	p.bracketed("?", ":", func() { n.add(p.assignment()) })
	return n.add(p.assignment())
}

// binary reads operands with operators in between, whatever their precedence.
func (p *parser) binary() *node {
	first := p.unary()
	if !p.isOneOf(operators) || p.noIn && p.is("in") {
		return first
	}
	n := &node{kind: binary, at: first.at, start: first.start}
	n.add(first)
	for p.isOneOf(operators) && !(p.noIn && p.is("in")) {
		n.ops = append(n.ops, p.text())
		p.next()
		n.add(p.unary())
	}
	return n
}

func (p *parser) unary() *node {
	awaits := p.is("await") && (p.async || !p.function)
	if !awaits && !p.is("!", "~", "+", "-", "++", "--", "typeof", "void", "delete") {
		return p.postfix()
	}
	p.enter()
	defer p.leave()
	n := p.node(unary)
	n.name = p.text()
	p.next()
	return n.add(p.unary())
}

func (p *parser) postfix() *node {
	n := p.operand()
	for {
		switch {
		case p.is("("):
			n = &node{kind: call, at: n.at, start: n.start, kids: []*node{n}}
			n.add(p.arguments()...)
		case p.is("++", "--") && !p.tok.Newline:
			p.next()
			return &node{at: n.at, start: n.start, kids: []*node{n}}
		default:
			access := p.access(n)
			if access == nil {
				return n
			}
			n = access
		}
	}
}

// access reads .b, ?.b, [b] or a template behind an operand, or nothing. It returns the
// operand for the ?. of a?.(b) and a?.[b], and nil at the end.
func (p *parser) access(of *node) *node {
	switch {
	case p.is("."):
		p.next()
		return p.named(of)
	case p.is("?."):
		p.next()
		if p.is("(", "[") {
			return of
		}
		return p.named(of)
	case p.is("["):
		n := &node{kind: index, start: of.start, kids: []*node{of}}
		p.bracketed("[", "]", func() {
			n.at = p.tok.Start
			n.add(p.expression())
		})
		return n
	case p.tok.Kind == snippet.Template:
		return &node{at: of.at, start: of.start, kids: []*node{of, p.template()}}
	}
	return nil
}

// named reads the name of a property of an operand.
func (p *parser) named(of *node) *node {
	n := p.word(member)
	n.start = of.start
	return n.add(of)
}

func (p *parser) arguments() (list []*node) {
	p.bracketed("(", ")", func() { list = p.list(")") })
	return list
}
