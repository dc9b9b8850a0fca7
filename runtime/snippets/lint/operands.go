package lint

import (
	"strings"

	"gaol/internal/snippet"
)

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
