package snippet

import "strings"

// operand reads an operand. An arrow function ends the expression.
func (p *parser) operand() *Node {
	switch p.tok.kind {
	case word:
		return p.wordOperand()
	case number, quoted:
		return p.literal()
	case template:
		return p.template()
	}
	switch {
	case p.is("("):
		n := p.arrowOr(p.arguments(p.node(Sequence)), false)
		if n.Kind == Sequence && len(n.Kids) == 1 {
			n = n.Kids[0]
		}
		return n
	case p.isAny("[", "{"):
		return p.arrayOrObject()
	case p.isAny("/", "/="):
		p.setToken(p.regex(p.tok))
		return p.keyword(Other)
	}
	p.fail()
	return p.node(Other)
}

func (p *parser) wordOperand() *Node {
	isVariable := true
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
		if !p.peekIs(".") {
			return p.construct()
		}
		p.next()
		p.expect(".") // new.target
		isVariable = false
	}
	n := p.binding(Identifier)
	if !isVariable || noVariables[n.Name] || strings.HasPrefix(n.Name, "#") {
		n.Kind = Other
	}
	return p.arrowOr(n, false)
}

// asyncOperand reads an async function, or async as a name.
func (p *parser) asyncOperand() *Node {
	after, next := p.peek(1)
	if p.isFunction() {
		return p.functionFrom()
	}
	name := p.binding(Identifier)
	switch {
	case after.newline:
	case next == "(":
		n := p.arrowOr(p.arguments(p.node(Sequence)), true)
		if n.Kind == Sequence { // a call of a function named async
			n = enclosing(Call, "", name).add(n.Kids...)
		}
		return n
	case after.kind == word && p.peekIs("=>"):
		return p.arrowOr(p.binding(Identifier), true)
	}
	return p.arrowOr(name, false)
}

// arrowOr reads an arrow function if its arrow follows. Its parameters are a variable, or the children of a sequence.
func (p *parser) arrowOr(n *Node, async bool) *Node {
	if !p.is("=>") || p.tok.newline {
		return n
	}
	if n.Kind != Sequence {
		n = enclosing(Arrow, "", n)
	}
	n.Kind = Arrow
	p.next()
	isBlock := p.is("{")
	p.inside(context{async: async, function: true, noIn: p.noIn && !isBlock}, func() {
		if isBlock {
			n.add(p.block())
		} else {
			n.add(p.assignment())
		}
	})
	n.End = p.last
	return n
}

// importOperand reads import.meta, or the callee of import(…) and import.source(…).
func (p *parser) importOperand() *Node {
	n := p.keyword(ImportCall)
	switch {
	case p.accept("."):
		if p.is("meta") {
			n.Kind, n.End = ImportMeta, p.tok.end
			p.isModule = true
		}
		p.next()
	case !p.is("("):
		p.fail()
	}
	return n
}

// arrayOrObject reads a value or a pattern.
func (p *parser) arrayOrObject() (n *Node) {
	if p.is("[") {
		n = p.keyword(Array)
		p.list("]", func() {
			if !p.is(",") { // an omitted element
				n.add(p.element())
			}
		})
	} else {
		n = p.object()
	}
	n.End = p.last
	return n
}

// object reads an object or an object pattern.
func (p *parser) object() *Node {
	n := p.node(Object)
	p.expect("{")
	p.list("}", func() {
		if p.is("...") {
			n.add(p.element())
		} else {
			n.add(p.property())
		}
	})
	n.End = p.last
	return n
}

// element reads an expression, or ... and one.
func (p *parser) element() *Node {
	if !p.is("...") {
		return p.assignment()
	}
	return p.keyword(Spread).add(p.assignment())
}

// template reads a template from its first part on.
func (p *parser) template() *Node {
	p.fenced = p.fenced || fenceAt(p.code, p.tok.start, "```")
	n := p.node(Template)
	for {
		text, more := strings.CutSuffix(p.text(), "${")
		part := p.node(Literal)
		if !more {
			text = text[:len(text)-1]
		}
		part.Name = unescape(text[1:])
		n.add(part)
		p.next()
		if !more {
			return n
		}
		n.add(p.enclosed(p.sequence))
		if p.tok.kind != templateRest {
			p.fail()
			return n
		}
	}
}

// literal reads a string or a number.
func (p *parser) literal() *Node {
	n := p.node(Literal)
	n.End = p.tok.end
	if n.Name = p.text(); p.tok.kind == quoted {
		n.Name = unescape(n.Name[1 : len(n.Name)-1])
	}
	p.next()
	return n
}
