package snippet

import (
	"slices"
	"strings"
)

// importStatement reads a static import.
func (p *parser) importStatement() *Node {
	n := p.keyword(ImportFrom)
	if p.tok.kind != quoted {
		p.importClause(n)
		p.expect("from")
	}
	return p.moduleName(n)
}

// importClause reads the names that an import binds: a, * as a, {a as b} or two of these.
func (p *parser) importClause(n *Node) {
	if (p.isAny("defer", "source") || p.types && p.is("type")) && p.isPhase() {
		p.next()
	}
	if p.tok.kind == word {
		p.importedName(n, "default")
		if !p.accept(",") {
			return
		}
	}
	if p.accept("*") {
		p.expect("as")
		p.importedName(n, "*")
		return
	}
	p.expect("{")
	p.list("}", func() {
		if _, next := p.peek(1); p.types && p.is("type") && next != "as" && next != "," && next != "}" {
			p.next()
		}
		imported := p.text()
		if p.peekIs("as") {
			p.next()
			p.next()
		}
		p.importedName(n, imported)
	})
}

// importedName reads the name that an import binds.
func (p *parser) importedName(n *Node, imported string) {
	local := p.binding(Binding)
	local.Key = &Node{Kind: Literal, Name: imported}
	n.add(local)
}

// isPhase reports whether the word after import is a phase and not a binding: import defer
// * as a, import source a, import type {a}.
func (p *parser) isPhase() bool {
	after, next := p.peek(1)
	behind, _ := p.peek(2)
	return next == "*" || next == "{" || after.kind == word && (next != "from" || behind.kind == word)
}

// moduleName reads the quoted name of a module and its attributes.
func (p *parser) moduleName(n *Node) *Node {
	p.isModule = true
	if p.tok.kind != quoted {
		p.fail()
	}
	n.Key = p.literal()
	n.At, n.Name = n.Key.At, n.Key.Name
	if p.is("with") || p.is("assert") && !p.tok.newline {
		p.next()
		n.Key.add(p.object())
	}
	p.semicolon()
	return n
}

func (p *parser) exportStatement() *Node {
	p.isModule = true
	n := p.keyword(ExportList)
	switch {
	case p.accept("default"):
		p.exportDefault(n)
		return n
	case p.accept("*"):
		if p.accept("as") {
			p.next()
		}
	case p.accept("{"):
		p.list("}", func() { n.add(p.exportedName()) })
		if !p.is("from") {
			p.semicolon()
			return n
		}
	default:
		n.Kind, n.At = Export, p.tok.start
		return n.add(p.statement())
	}
	p.expect("from")
	n.Kids = []*Node{p.moduleName(p.node(ImportFrom))}
	return n
}

// exportedName reads an element of a list of exports.
func (p *parser) exportedName() *Node {
	n := p.node(Other)
	n.Name = p.text()
	p.next()
	n.Key = &Node{Kind: Literal, Name: n.Name}
	if p.accept("as") {
		n.Key.Name = p.text()
		p.next()
	}
	return n
}

// exportDefault reads the rest of export default. Functions and classes are declarations
// there, but need no name.
func (p *parser) exportDefault(n *Node) {
	n.Kind, n.At = ExportDefault, p.tok.start
	switch {
	case p.isFunction():
		n.add(p.declared(p.functionFrom()))
	case p.is("class"):
		n.add(p.declared(p.class()))
	default:
		n.add(p.assignment())
		n.End = p.last
		p.semicolon()
	}
}

// Syntax is the module format that the text of a program indicates.
type Syntax struct {
	// Module: the code is valid only as an ES module. It contains an import or export
	// declaration, import.meta or await at its top level, or declares one of CommonJS's
	// own names there by const, let or class. These are Node's rules.
	Module bool

	// CommonJS: the code uses a name that only CommonJS has, such as require, without
	// declaring it in that scope.
	CommonJS bool
}

// CommonJS are the names that Node defines only in CommonJS modules.
var CommonJS = []string{"require", "module", "exports", "__filename", "__dirname"}

// MentionsCommonJS reports whether code may use a name of CommonJS. It is a quick check: names in
// strings and comments count.
func MentionsCommonJS(code string) bool {
	return slices.ContainsFunc(CommonJS, func(name string) bool { return strings.Contains(code, name) })
}

// SyntaxOf detects the module format of JavaScript. names lists the [CommonJS] names that are not globals of the
// program. It builds a syntax tree, of up to 1,000 bytes for each byte of code.
//
// If code cannot be parsed, only the part before the error counts. In that part, a name counts
// even if it is declared.
func SyntaxOf(code string, names []string) Syntax {
	p := parse(code, maxTreeNesting)
	found := Syntax{Module: p.isModule}
	for _, name := range CommonJS {
		found.Module = found.Module || p.root.Scope != nil && p.root.Scope.names[name].isLexical()
	}
	if !p.isModule {
		for n := range p.root.all() {
			found.CommonJS = found.CommonJS || slices.Contains(names, n.Name) && n.IsGlobal()
		}
	}
	return found
}

func isCommonJS(name string) bool { return slices.Contains(CommonJS, name) }
