package snippet

import (
	"slices"
	"strings"
)

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
// so operands and operators alternate. Operands nested on the right, for which esbuild
// recurses, count as nested until the end.
func (p *parser) assignment(noIn bool) *Node {
	depth := p.depth
	defer func() { p.depth = depth }()
	var o operation
	for level := depth; !p.failed; {
		p.depth = level
		p.enter()
		if p.is("yield") && p.generator {
			o.rightAssociative(p.node(Other))
			if !p.yield() {
				break
			}
			continue
		}
		operand, isArrow := p.unary(noIn)
		o.operand(operand)
		if isArrow {
			break
		}
		some, right := p.operator(noIn, &o)
		if !some {
			break
		}
		if right {
			level++
		}
	}
	return o.end()
}

// unary reads an operand, the operators before it, and all that directly follows it.
func (p *parser) unary(noIn bool) (n *Node, isArrow bool) {
	operators := p.prefixOperators()
	n, isArrow = p.operand(noIn)
	if !isArrow {
		n, operators = p.postfixes(n, operators)
	}
	for _, o := range slices.Backward(operators) {
		n = o.add(n)
	}
	return n, isArrow
}

// prefixes are the prefix operators, to the parser also new.
var prefixes = setOf("!", "~", "+", "-", "++", "--", "typeof", "void", "delete", "new")

// prefixOperators reads the operators before an operand, and returns their nodes.
func (p *parser) prefixOperators() (list []*Node) {
	for p.tok.kind == word || p.tok.kind == punctuator {
		text := p.text()
		switch {
		case text == "await" && p.async && !p.peekIs("=>"):
			p.noteAwait()
		case text == "new" && p.peekIs("."):
			return list
		case !prefixes[text]:
			return list
		}
		if text == "~" {
			p.tildeFenced = p.tildeFenced || fenceAt(p.code, p.tok.start, "~~~")
		}
		p.enter()
		n := p.named(Unary)
		if text == "new" {
			n.Kind = Construct
		}
		list = append(list, n)
		p.next()
	}
	return list
}

// noteAwait records an await, which makes the code a module if it is outside functions.
func (p *parser) noteAwait() { p.topAwait = p.topAwait || !p.function }

// yield reads the word, and reports whether an operand follows.
func (p *parser) yield() bool {
	p.next()
	if p.tok.newline || p.tok.kind == atEnd || p.isAny(")", "]", "}", ",", ";", ":", "in", "of") {
		return false
	}
	p.accept("*")
	return true
}

// operator reads a binary operator, if there is one, and reports whether it is
// right-associative. esbuild makes lists of the left-associative ones.
func (p *parser) operator(noIn bool, o *operation) (some, right bool) {
	text := p.text()
	switch {
	case p.accept("?"):
		test := enclosing(Conditional, "", o.current)
		o.rightAssociative(test.add(p.assignment(false)))
		p.expect(":")
		return true, true
	case p.tok.kind == word:
		if some = text == "instanceof" || !noIn && text == "in"; some {
			o.leftAssociative(text)
			p.next()
		}
		return some, false
	case p.tok.kind != punctuator || notBinary[text]:
		return false, false
	case p.is("<") && strings.HasPrefix(p.code[p.tok.start:], "<!--"):
		p.fail() // a browser's HTML comment in scripts, an error in modules
	}
	if p.isAssignment() {
		right = true
		o.rightAssociative(enclosing(Assign, text, o.current))
	} else {
		right = text == "**"
		o.leftAssociative(text)
	}
	p.next()
	return true, right
}

var (
	// notBinary are the punctuators that are not binary operators.
	notBinary   = setOf("(", ")", "[", "]", "{", "}", ";", ",", ":", ".", "...", "?.", "=>", "!", "~", "++", "--")
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

// postfixes reads all that directly follows an operand: .name, [key], (arguments), a
// template, ++. Of the operators before the operand, a last new takes the arguments.
func (p *parser) postfixes(n *Node, operators []*Node) (*Node, []*Node) {
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
		case p.is("("):
			call := enclosing(Call, "", n)
			if last := len(operators) - 1; last >= 0 && operators[last].Kind == Construct {
				call = operators[last].add(n)
				operators = operators[:last]
			}
			n = p.arguments(call)
		case p.isAny("++", "--") && !p.tok.newline:
			n = enclosing(Unary, p.text(), n)
			p.next()
		default:
			return n, operators
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
