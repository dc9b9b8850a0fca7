package lint

import (
	"strings"

	"gaol/internal/snippet"
)

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

func (p *parser) operand() *node {
	switch p.tok.Kind {
	case snippet.Word:
		return p.wordOperand()
	case snippet.Quoted, snippet.Number:
		return p.literal()
	case snippet.Template:
		return p.template()
	}
	switch {
	case p.is("("):
		return p.parenthesized()
	case p.is("["):
		n := p.node(array)
		p.bracketed("[", "]", func() { n.add(p.list("]")...) })
		return n
	case p.is("{"):
		return p.object()
	case p.is("/", "/="):
		n := p.node(other)
		if p.tok = p.tokens.Regex(p.tok.Start); p.tok.Kind != snippet.Regex {
			p.fail()
		}
		p.next()
		return n
	}
	p.fail()
	return p.node(other)
}

// literal reads a string or a number.
func (p *parser) literal() *node {
	n := p.node(str)
	if n.name = p.text(); p.tok.Kind == snippet.Quoted {
		n.name = unescape(n.name[1 : len(n.name)-1])
	}
	p.next()
	return n
}

// template reads a template.
func (p *parser) template() *node {
	n := p.node(template)
	for p.tok.Kind == snippet.Template {
		part := p.node(str)
		text, last := strings.CutSuffix(p.text()[1:], "`")
		part.name = unescape(strings.TrimSuffix(text, "${"))
		n.add(part)
		p.next()
		if last {
			return n
		}
		noIn := p.noIn
		p.noIn = false
		n.add(p.expression())
		p.noIn = noIn
		if !p.is("}") {
			break
		}
		p.tok = p.tokens.Template(p.tok.Start)
	}
	p.fail()
	return n
}

// parenthesized reads an expression in parentheses, or an arrow function.
func (p *parser) parenthesized() *node {
	n := p.node(sequence)
	n.add(p.arguments()...)
	switch {
	case p.is("=>"):
		n.kind = arrow
		return p.arrowBody(n, false)
	case len(n.kids) == 1:
		return n.kids[0]
	}
	return n
}

func (p *parser) wordOperand() *node {
	switch p.text() {
	case "function":
		return p.functionFrom()
	case "class":
		return p.class()
	case "async":
		return p.asyncOperand()
	case "import":
		return p.importOperand()
	case "new":
		return p.construct()
	case "this", "super", "null", "true", "false":
		n := p.node(other)
		p.next()
		return n
	}
	n := p.word(ident)
	if strings.HasPrefix(n.name, "#") {
		n.kind = other // #a in b
	}
	return p.arrowOr(n, false)
}

// arrowOr reads an arrow function with one parameter, or returns the parameter.
func (p *parser) arrowOr(n *node, async bool) *node {
	if !p.is("=>") {
		return n
	}
	return p.arrowBody(&node{kind: arrow, at: n.at, start: n.start, kids: []*node{n}}, async)
}

// asyncOperand reads an async function, or async as a name.
func (p *parser) asyncOperand() *node {
	after, next := p.peek()
	switch {
	case next == "function" && !after.Newline:
		return p.functionFrom()
	case after.Kind == snippet.Word && !after.Newline && !operators[next] && next != "of":
		p.next()
		return p.arrowOr(p.word(ident), true)
	}
	n := p.word(ident)
	if next != "(" {
		return p.arrowOr(n, false)
	}
	args := p.arguments()
	if p.is("=>") {
		return p.arrowBody(&node{kind: arrow, at: n.at, start: n.start, kids: args}, true)
	}
	return (&node{kind: call, at: n.at, start: n.start, kids: []*node{n}}).add(args...)
}

// importOperand reads import(…), import.meta and import.defer(…).
func (p *parser) importOperand() *node {
	n := p.node(importCall)
	p.next()
	if p.accept(".") {
		if p.accept("meta") {
			n.kind = importMeta
			return n
		}
		p.next()
	}
	return n.add(p.arguments()...)
}

// construct reads new a.b(…) and new.target.
func (p *parser) construct() *node {
	p.enter()
	defer p.leave()
	n := p.node(construct)
	p.next()
	if p.accept(".") {
		p.next()
		n.kind = other
		return n
	}
	callee := p.operand()
	for next := p.access(callee); next != nil; next = p.access(callee) {
		callee = next
	}
	n.add(callee)
	if p.is("(") {
		n.add(p.arguments()...)
	}
	return n
}
