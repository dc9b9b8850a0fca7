package snippet

import "strings"

// operandKind determines which tokens may follow an operand.
type operandKind uint8

const (
	aValue    operandKind = iota
	aFunction             // a function expression
	anArrow               // an arrow function, which ends the expression
)

func (p *parser) operand(noIn bool) operandKind {
	switch p.tok.kind {
	case word:
		return p.wordOperand(noIn)
	case number, quoted, regex:
		p.next()
		return aValue
	case template:
		p.template()
		return aValue
	case punctuator:
		return p.bracketOperand(noIn)
	}
	p.fail()
	return aValue
}

func (p *parser) bracketOperand(noIn bool) operandKind {
	switch p.text() {
	case "(":
		names := p.beginNames()
		kind := aValue
		if p.arguments() {
			kind = aFunction
		}
		return p.arrowOr(kind, names, false, noIn)
	case "[", "{":
		p.arrayOrObject()
	case "/", "/=":
		p.rescan(p.regex)
		p.next()
	default:
		p.fail()
	}
	return aValue
}

// arrayOrObject reads a value or a pattern that is assigned to.
func (p *parser) arrayOrObject() {
	start := p.tok.start
	if p.is("[") {
		p.array()
	} else {
		p.object()
	}
	if p.is("=") {
		p.noteAssigned(start)
	}
}

// noteAssigned records the words of an expression that is assigned to, from start to the current token.
func (p *parser) noteAssigned(start int) {
	l := lexer{code: p.code[:p.last], pos: start}
	for t := l.next(); t.kind != atEnd && t.kind != notAToken; t = l.next() {
		if t.kind == word {
			p.assigned = append(p.assigned, l.code[t.start:t.end])
		}
	}
}

func (p *parser) wordOperand(noIn bool) operandKind {
	switch p.text() {
	case "function":
		p.functionFrom()
		return aFunction
	case "class":
		p.class()
		return aValue
	case "async":
		return p.asyncOperand(noIn)
	case "import":
		p.importOperand()
		return aValue
	case "new": // new.target
		p.next()
		p.expect(".")
	}
	names, name := p.beginNames(), p.text()
	p.useName(name)
	p.next()
	if p.isAssignment() || p.tok.kind == punctuator && increments[p.text()] {
		p.assigned = append(p.assigned, name)
	}
	return p.arrowOr(aValue, names, false, noIn)
}

// isAssignment reports whether the current token is an operator that assigns.
func (p *parser) isAssignment() bool {
	return p.tok.kind == punctuator && strings.HasSuffix(p.text(), "=") && !comparisons[p.text()]
}

// asyncOperand reads an async function, or async as a name.
func (p *parser) asyncOperand(noIn bool) operandKind {
	switch after, next := p.peek(); {
	case after.newline:
	case next == "function":
		p.functionFrom()
		return aFunction
	case next == "(":
		p.next()
		names := p.beginNames()
		p.arguments()
		return p.arrowOr(aValue, names, true, noIn)
	case after.kind == word:
		l := p.lexer
		l.next()
		if t := l.next(); p.code[t.start:t.end] == "=>" {
			p.next()
			p.bindName(p.text())
			p.next()
			return p.arrow(true, noIn)
		}
	}
	names := p.beginNames()
	p.next()
	return p.arrowOr(aValue, names, false, noIn)
}

// importOperand reads import(…), import.meta and import.source(…).
func (p *parser) importOperand() {
	start := p.tok.start
	p.next()
	switch {
	case p.accept("."):
		if p.is("meta") {
			p.metas = append(p.metas, span{start, p.tok.end})
		}
		p.next()
	case !p.is("("):
		p.fail()
	}
}

// arrowOr reads an arrow function if its arrow follows, whose parameters are the names
// since beginNames returned names. Otherwise it returns kind.
func (p *parser) arrowOr(kind operandKind, names nameSet, async, noIn bool) operandKind {
	if !p.is("=>") || p.tok.newline {
		p.names |= names
		return kind
	}
	p.bindNames(names)
	return p.arrow(async, noIn)
}

// arrow reads an arrow function from its arrow on.
func (p *parser) arrow(async, noIn bool) operandKind {
	p.next()
	p.inside(context{async: async, function: true}, func() {
		if p.is("{") {
			p.lastBody = p.block()
		} else {
			p.assignment(noIn)
			p.lastBody = nil
		}
	})
	return anArrow
}
