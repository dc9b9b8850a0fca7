package snippet

import "strings"

// sequence reads an expression with commas.
func (p *parser) sequence() *Node {
	n := p.assignment()
	if p.is(",") {
		n = enclosing(Sequence, "", n)
	}
	for p.accept(",") {
		n.add(p.assignment())
	}
	return n
}

// assignment reads an expression without commas. Precedence does not affect where it ends,
// so operands and binary operators alternate.
func (p *parser) assignment() *Node {
	depth := p.depth
	defer func() { p.depth = depth }()
	p.enter()
	if p.is("yield") && p.generator {
		return p.yield()
	}
	n := p.binary()
	switch {
	case p.isArrow(n):
	case p.accept("?"):
		n = enclosing(Other, "", n).add(p.enclosed(p.assignment))
		p.expect(":")
		n.add(p.assignment())
	case p.isAssignment():
		n = enclosing(Assign, p.text(), n)
		p.next()
		n.add(p.assignment())
	}
	return n
}

// isArrow reports whether an expression is an arrow function without parentheses, which ends there.
func (p *parser) isArrow(n *Node) bool { return n.Kind == Arrow && n.End == p.last }

// binary reads operands with binary operators between them. esbuild makes lists of the left-associative ones, and
// recurses for others, whose operands count as nested until the end.
func (p *parser) binary() *Node {
	level := p.depth
	n := p.unary()
	if p.isArrow(n) || !p.isBinary() {
		return n
	}
	n = enclosing(Binary, "", n)
	for p.isBinary() {
		if p.is("**") {
			level++
		}
		n.Ops = append(n.Ops, p.text())
		p.next()
		p.depth = level
		p.enter()
		n.add(p.unary())
	}
	return n
}

// unary reads an operand, the operators before it, and all that directly follows it.
func (p *parser) unary() *Node {
	switch {
	case p.is("await") && p.async && !p.peekIs("=>"):
		p.noteAwait()
	case (p.tok.kind != word && p.tok.kind != punctuator) || !prefixes[p.text()]:
		n := p.operand()
		if p.isArrow(n) {
			return n
		}
		return p.postfixes(n, true)
	}
	p.enter()
	n := p.named(Unary)
	p.next()
	return n.add(p.unary())
}

// construct reads new, a class, and its arguments if there are any.
func (p *parser) construct() *Node {
	p.enter()
	n := p.keyword(Construct)
	n.add(p.postfixes(p.operand(), false))
	if p.is("(") {
		p.arguments(n)
	}
	return n
}

// noteAwait records an await, which makes the code a module if it is outside functions.
func (p *parser) noteAwait() { p.isModule = p.isModule || !p.function }

// yield reads the word, and an operand if one follows.
func (p *parser) yield() *Node {
	n := p.keyword(Other)
	if p.tok.newline || p.tok.kind == atEnd || p.tok.kind == templateRest || p.isAny(")", "]", "}", ",", ";", ":", "in", "of") {
		return n
	}
	p.accept("*")
	return n.add(p.assignment())
}

// isBinary reports whether the current token is a binary operator other than an assignment.
func (p *parser) isBinary() bool {
	switch p.tok.kind {
	case word:
		return p.is("instanceof") || !p.noIn && p.is("in")
	case punctuator:
		return !notBinary[p.text()] && !p.isAssignment()
	}
	return false
}

// isAssignment reports whether the current token is an operator that assigns.
func (p *parser) isAssignment() bool {
	return p.tok.kind == punctuator && strings.HasSuffix(p.text(), "=") && !comparisons[p.text()]
}

var (
	prefixes = setOf("!", "~", "+", "-", "++", "--", "typeof", "void", "delete")
	// notBinary are the punctuators that are not binary operators.
	notBinary   = setOf("(", ")", "[", "]", "{", "}", ";", ",", ":", "?", ".", "...", "?.", "=>", "!", "~", "++", "--")
	increments  = setOf("++", "--")
	comparisons = setOf("==", "===", "!=", "!==", "<=", ">=")
	noVariables = setOf("this", "super", "null", "true", "false")
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
			p.refuse()
		}
	}
}

// member reads .name, .#name, ?.name and the invalid ?.`…`.
func (p *parser) member(of *Node) *Node {
	p.next()
	if p.tok.kind != word {
		p.fail()
	}
	n := p.binding(Member)
	n.Start = of.Start
	return n.add(of)
}

// index reads [key].
func (p *parser) index(of *Node) *Node {
	p.next()
	n := enclosing(Index, "", of)
	n.At = p.tok.start
	n.add(p.enclosed(p.sequence))
	p.expect("]")
	return n
}

// arguments reads a list in parentheses, as children of a node: an expression, the arguments of a call, or the
// parameters of a function.
func (p *parser) arguments(of *Node) *Node {
	p.expect("(")
	p.list(")", func() { of.add(p.element()) })
	return of
}

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
