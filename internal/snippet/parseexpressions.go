package snippet

import "strings"

// sequence reads an expression with commas.
func (p *parser) sequence(noIn bool) *Node {
	n := p.assignment(noIn)
	if p.is(",") {
		n = enclosing(Sequence, "", n)
	}
	for p.accept(",") {
		n.add(p.assignment(noIn))
	}
	return n
}

// assignment reads an expression without commas. Precedence does not affect where it ends,
// so operands and binary operators alternate.
func (p *parser) assignment(noIn bool) *Node {
	depth := p.depth
	defer func() { p.depth = depth }()
	p.enter()
	if p.is("yield") && p.generator {
		return p.yield(noIn)
	}
	n, isArrow := p.binary(noIn)
	switch {
	case isArrow || p.failed:
	case p.accept("?"):
		n = enclosing(Other, "", n).add(p.assignment(false))
		p.expect(":")
		n.add(p.assignment(noIn))
	case p.isAssignment():
		n = enclosing(Assign, p.text(), n)
		p.next()
		n.add(p.assignment(noIn))
	}
	return n
}

// binary reads operands with binary operators between them. esbuild makes lists of the left-associative ones, and
// recurses for others, whose operands count as nested until the end.
func (p *parser) binary(noIn bool) (n *Node, isArrow bool) {
	level := p.depth
	n, isArrow = p.unary(noIn)
	if isArrow || !p.isBinary(noIn) {
		return n, isArrow
	}
	n = enclosing(Binary, "", n)
	for !isArrow && p.isBinary(noIn) {
		if p.is("**") {
			level++
		}
		if !n.childless {
			n.Ops = append(n.Ops, p.text())
		}
		p.next()
		p.depth = level
		p.enter()
		var operand *Node
		operand, isArrow = p.unary(noIn)
		n.add(operand)
	}
	return n, isArrow
}

// unary reads an operand, the operators before it, and all that directly follows it.
func (p *parser) unary(noIn bool) (n *Node, isArrow bool) {
	switch {
	case p.is("await") && p.async && !p.peekIs("=>"):
		p.noteAwait()
		fallthrough
	case p.isPrefix():
		p.enter()
		n = p.named(Unary)
		p.next()
		operand, isArrow := p.unary(noIn)
		return n.add(operand), isArrow
	case p.is("new") && !p.peekIs("."):
		n = p.construct()
	default:
		if n, isArrow = p.operand(noIn); isArrow {
			return n, true
		}
	}
	return p.postfixes(n, true), false
}

var prefixes = setOf("!", "~", "+", "-", "++", "--", "typeof", "void", "delete")

func (p *parser) isPrefix() bool {
	return (p.tok.kind == word || p.tok.kind == punctuator) && prefixes[p.text()]
}

// construct reads new, a class, and its arguments if there are any.
func (p *parser) construct() *Node {
	p.enter()
	n := p.node(Construct)
	p.next()
	var of *Node
	if p.is("new") && !p.peekIs(".") {
		of = p.construct()
	} else {
		of, _ = p.operand(false)
	}
	n.add(p.postfixes(of, false))
	if p.is("(") {
		p.arguments(n)
	}
	return n
}

// noteAwait records an await, which makes the code a module if it is outside functions.
func (p *parser) noteAwait() { p.topAwait = p.topAwait || !p.function }

// yield reads the word, and an operand if one follows.
func (p *parser) yield(noIn bool) *Node {
	n := p.node(Other)
	p.next()
	if p.tok.newline || p.tok.kind == atEnd || p.isAny(")", "]", "}", ",", ";", ":", "in", "of") {
		return n
	}
	p.accept("*")
	return n.add(p.assignment(noIn))
}

// isBinary reports whether the current token is a binary operator other than an assignment.
func (p *parser) isBinary(noIn bool) bool {
	switch p.tok.kind {
	case word:
		return p.is("instanceof") || !noIn && p.is("in")
	case punctuator:
		if p.is("<") && strings.HasPrefix(p.code[p.tok.start:], "<!--") {
			p.fail() // a browser's HTML comment in scripts, an error in modules
			return false
		}
		return !notBinary[p.text()] && !p.isAssignment()
	}
	return false
}

var (
	// notBinary are the punctuators that are not binary operators.
	notBinary   = setOf("(", ")", "[", "]", "{", "}", ";", ",", ":", "?", ".", "...", "?.", "=>", "!", "~", "++", "--")
	increments  = setOf("++", "--")
	comparisons = setOf("==", "===", "!=", "!==", "<=", ">=")
)

func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool)
	for _, t := range texts {
		set[t] = true
	}
	return set
}

// postfixes reads all that directly follows an operand: .name, [key], a template and, if calls is set,
// (arguments) and ++.
func (p *parser) postfixes(n *Node, calls bool) *Node {
	for count := 0; ; count++ {
		switch {
		case p.tok.kind == template:
			n = enclosing(Other, "", n).add(p.template())
		case p.is("."), p.is("?.") && !p.peekIs("(") && !p.peekIs("["):
			n = p.member(n)
		case p.is("?."):
			p.next()
		case p.is("["):
			n = p.index(n)
		case calls && p.is("("):
			n = p.arguments(enclosing(Call, "", n))
		case calls && p.isAny("++", "--") && !p.tok.newline:
			n = enclosing(Unary, p.text(), n)
			p.next()
		default:
			return n
		}
		if count > maxMembers {
			p.refusal = nestedTooDeeply
			p.fail()
		}
	}
}

// member reads .name, .#name, ?.name and the invalid ?.`…`.
func (p *parser) member(of *Node) *Node {
	p.next()
	if p.tok.kind != word {
		p.fail()
	}
	n := p.named(Member)
	p.next()
	n.Start = of.Start
	return n.add(of)
}

// index reads [key].
func (p *parser) index(of *Node) *Node {
	p.next()
	n := enclosing(Index, "", of)
	n.At = p.tok.start
	n.add(p.sequence(false))
	p.expect("]")
	return n
}

// arguments reads a list in parentheses, as children of a node: an expression, the arguments of a call, or the
// parameters of an arrow function.
func (p *parser) arguments(of *Node) *Node {
	p.expect("(")
	p.list(")", func() { of.add(p.element()) })
	return of
}

func (p *parser) array() *Node {
	n := p.node(Array)
	p.expect("[")
	p.list("]", func() {
		if !p.is(",") { // an omitted element
			n.add(p.element())
		}
	})
	return n
}

// template reads a template from its first part on.
func (p *parser) template() *Node {
	p.fenced = p.fenced || fenceAt(p.code, p.tok.start, "```")
	n := p.node(Template)
	for {
		text, end := p.text(), "`"
		more := p.tok.kind == template && strings.HasSuffix(text, "${")
		if more {
			end = "${"
		}
		if part := p.node(Literal); text != "" {
			part.Name = unescape(strings.TrimSuffix(text[1:], end))
			n.add(part)
		}
		p.next()
		if !more {
			return n
		}
		n.add(p.sequence(false))
		if !p.is("}") {
			p.fail()
			return n
		}
		p.rescan(p.lexer.template)
	}
}

// literal reads a string or a number.
func (p *parser) literal() *Node {
	n := p.node(Literal)
	if n.Name = p.text(); p.tok.kind == quoted {
		n.Name = unescape(n.Name[1 : len(n.Name)-1])
	}
	p.next()
	return n
}
