package snippet

import "strings"

// operand reads an operand. An arrow function ends the expression.
func (p *parser) operand(noIn bool) (n *Node, isArrow bool) {
	switch p.tok.kind {
	case word:
		return p.wordOperand(noIn)
	case number, quoted:
		return p.literal(), false
	case template:
		return p.template(), false
	case punctuator:
		return p.bracketOperand(noIn)
	}
	p.fail()
	return nil, false
}

func (p *parser) bracketOperand(noIn bool) (*Node, bool) {
	n := p.node(Other)
	switch p.text() {
	case "(":
		return p.parenthesized(noIn)
	case "[", "{":
		return p.arrayOrObject(), false
	case "/", "/=":
		p.rescan(p.regex)
		p.next()
	default:
		p.fail()
	}
	return n, false
}

// parenthesized reads an expression in parentheses, or an arrow function.
func (p *parser) parenthesized(noIn bool) (*Node, bool) {
	n, isArrow := p.arrowOr(p.arguments(p.node(Sequence)), false, noIn)
	if !isArrow && len(n.Kids) == 1 {
		n = n.Kids[0]
	}
	return n, isArrow
}

// arrayOrObject reads a value or a pattern.
func (p *parser) arrayOrObject() *Node {
	if p.is("[") {
		return p.array()
	}
	return p.object()
}

var noVariables = setOf("this", "super", "null", "true", "false")

func (p *parser) wordOperand(noIn bool) (*Node, bool) {
	isVariable := true
	switch p.text() {
	case "function":
		return p.functionFrom(), false
	case "class":
		return p.class(), false
	case "async":
		return p.asyncOperand(noIn)
	case "import":
		return p.importOperand(), false
	case "new": // new.target
		p.next()
		p.expect(".")
		isVariable = false
	}
	n := p.named(Identifier)
	if !isVariable || noVariables[n.Name] || strings.HasPrefix(n.Name, "#") {
		n.Kind = Other
	}
	p.next()
	return p.arrowOr(n, false, noIn)
}

// isAssignment reports whether the current token is an operator that assigns.
func (p *parser) isAssignment() bool {
	return p.tok.kind == punctuator && strings.HasSuffix(p.text(), "=") && !comparisons[p.text()]
}

// asyncOperand reads an async function, or async as a name.
func (p *parser) asyncOperand(noIn bool) (*Node, bool) {
	switch after, next := p.peek(); {
	case after.newline:
	case next == "function":
		return p.functionFrom(), false
	case next == "(":
		return p.asyncCall(noIn)
	case after.kind == word:
		l := p.lexer
		l.next()
		if t := l.next(); p.code[t.start:t.end] == "=>" {
			p.next()
			return p.arrow(p.binding(Identifier), true, noIn)
		}
	}
	n := p.named(Identifier)
	p.next()
	return p.arrowOr(n, false, noIn)
}

// asyncCall reads an async arrow function, or a call of a function named async.
func (p *parser) asyncCall(noIn bool) (*Node, bool) {
	callee, n := p.named(Identifier), p.node(Sequence)
	p.next()
	n, isArrow := p.arrowOr(p.arguments(n), true, noIn)
	if !isArrow {
		n = enclosing(Call, "", callee).add(n.Kids...)
	}
	return n, isArrow
}

// importOperand reads import.meta, or the callee of import(…) and import.source(…).
func (p *parser) importOperand() *Node {
	n := p.node(ImportCall)
	start := p.tok.start
	p.next()
	switch {
	case p.accept("."):
		if p.is("meta") {
			p.metas = append(p.metas, span{start, p.tok.end})
			n.Kind = ImportMeta
		}
		p.next()
	case !p.is("("):
		p.fail()
	}
	return n
}

// arrowOr reads an arrow function if its arrow follows. Its parameters are a variable, or the children of a sequence.
func (p *parser) arrowOr(n *Node, async, noIn bool) (*Node, bool) {
	if !p.is("=>") || p.tok.newline {
		return n, false
	}
	return p.arrow(n, async, noIn)
}

// arrow reads an arrow function from its arrow on.
func (p *parser) arrow(n *Node, async, noIn bool) (*Node, bool) {
	if n.Kind != Sequence {
		n = enclosing(Arrow, "", n)
	} else {
		n.Kind = Arrow
	}
	p.next()
	p.inside(context{async: async, function: true}, func() {
		if p.is("{") {
			p.lastBody = p.block(n)
		} else {
			n.add(p.assignment(noIn))
			p.lastBody = nil
		}
	})
	return n, true
}
