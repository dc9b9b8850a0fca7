package lint

import "gaol/internal/snippet"

// importDeclaration reads import a, {b as c} from 'd', and similar.
func (p *parser) importDeclaration() *node {
	n := p.node(importFrom)
	p.next()
	if _, next := p.peek(); p.is("defer", "source") && next != "from" && next != "," {
		p.next()
	}
	for p.tok.Kind != snippet.Quoted && p.tok.Kind != snippet.AtEnd {
		switch {
		case p.is("{"):
			n.add(p.importedNames()...)
		case p.accept("*"):
			p.expect("as")
		case p.accept(","):
		case p.is("from") && p.specifierFollows():
			p.next()
		default:
			n.add(p.word(binding))
		}
	}
	p.specifier(n)
	return n
}

func (p *parser) specifierFollows() bool {
	after, _ := p.peek()
	return after.Kind == snippet.Quoted
}

// importedNames reads {a, b as c, "d" as e}, and returns the names a, c and e.
func (p *parser) importedNames() (list []*node) {
	p.bracketed("{", "}", func() {
		for p.more("}") {
			var name *node
			for p.more("}") && !p.is(",") { // the last word is the local name
				name = p.exportName()
			}
			list = append(list, name)
			p.accept(",")
		}
	})
	return list
}

// exportName reads a name, which may be a string.
func (p *parser) exportName() *node {
	if p.tok.Kind == snippet.Quoted {
		return p.literal()
	}
	return p.word(binding)
}

// specifier reads the module of an import, and attributes.
func (p *parser) specifier(n *node) {
	n.at = p.tok.Start
	if p.tok.Kind != snippet.Quoted {
		p.fail()
		return
	}
	n.name = p.literal().name
	if p.accept("with") {
		p.object()
	}
	p.semicolon()
}

func (p *parser) export() *node {
	n := p.node(importFrom)
	p.next()
	switch {
	case p.accept("default"):
		return p.exportDefault()
	case p.accept("*"):
		if p.accept("as") {
			p.exportName()
		}
		p.expect("from")
		p.specifier(n)
		return n
	case !p.is("{"):
		return p.statement()
	}
	p.importedNames()
	if p.accept("from") {
		p.specifier(n)
		return n
	}
	p.semicolon()
	return nil // esbuild keeps only names that the file declares
}

func (p *parser) exportDefault() *node {
	_, next := p.peek()
	if p.is("function", "class") || p.is("async") && next == "function" {
		return p.declare()
	}
	return p.expressionStatement()
}
