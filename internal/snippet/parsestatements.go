package snippet

type statementKind uint8

const (
	plain      statementKind = iota // no value: a declaration, a loop, a jump
	empty                           // a lone semicolon
	expression                      // the value of the expression
	block                           // {…}
	branching                       // if, try, switch or a label: the value of one of its parts
	function                        // a function declaration
	class                           // a class declaration
	importing                       // import …
	exporting                       // export …, except a default
	defaulting                      // export default …
)

// A statement is a statement outside functions, or in the body of a function that is the whole
// program.
type statement struct {
	kind statementKind
	span // with its semicolon
	// value is the expression of an expression statement or of export default, and the
	// declaration of an export.
	value span
	// body is the body of a function that is the value or is declared.
	body []statement
	// parts are the lists of statements one of which runs last.
	parts [][]statement
	// declares is the kind of the exported declaration.
	declares statementKind
	bindings []binding // of an import
	from     span      // the quoted name of a module
	with     span      // an import's attributes
	node     *Node     // nil for an empty statement
}

// A binding is one name that an import binds or a list exports, as written.
type binding struct{ imported, local string }

func (p *parser) statements(of *Node) []statement {
	var list []statement
	for p.tok.kind != atEnd && !p.is("}") {
		list = append(list, p.part(of))
	}
	return list
}

func (p *parser) statement() statement {
	p.enter()
	defer p.leave()
	s := statement{span: span{start: p.tok.start}}
	switch p.tok.kind {
	case word:
		p.wordStatement(&s)
	case punctuator:
		p.punctuatorStatement(&s)
	default:
		p.expressionStatement(&s)
	}
	s.end = p.last
	return s
}

func (p *parser) punctuatorStatement(s *statement) {
	switch p.text() {
	case ";":
		s.kind = empty
		p.next()
	case "{":
		s.kind = block
		if p.depth == 1 {
			p.lastBlock = p.tok.start
		}
		s.node = p.node(Block)
		s.parts = [][]statement{p.braces(s.node)}
	default:
		p.expressionStatement(s)
	}
}

func (p *parser) wordStatement(s *statement) {
	switch p.text() {
	case "var", "const":
		p.variables(s)
	case "if":
		p.ifStatement(s)
	case "for":
		p.forStatement(s)
	case "while", "with":
		p.whileStatement(s)
	case "do":
		p.doStatement(s)
	case "try":
		p.tryStatement(s)
	case "switch":
		p.switchStatement(s)
	case "return", "throw", "break", "continue", "debugger":
		p.jumpStatement(s)
	case "function":
		s.kind = function
		p.functionStatement(s)
	case "class":
		s.kind = class
		p.classStatement(s)
	case "export":
		p.exportStatement(s)
	default:
		p.nameStatement(s)
	}
}

// nameStatement reads a statement that starts with a word that may be a name.
func (p *parser) nameStatement(s *statement) {
	text := p.text()
	after, next := p.peek()
	switch {
	case after.kind == punctuator && next == ":":
		s.kind = branching
		p.next()
		p.next()
		inner := p.statement()
		s.node, s.parts = inner.node, [][]statement{{inner}}
	case text == "import" && next != "(" && next != ".":
		p.importStatement(s)
	case text == "async" && next == "function" && !after.newline:
		s.kind = function
		p.functionStatement(s)
	case p.declares(text, after):
		p.variables(s)
	default:
		p.expressionStatement(s)
	}
}

// declares reports whether let, using or await using starts a declaration here.
func (p *parser) declares(text string, after token) bool {
	next := p.code[after.start:after.end]
	switch {
	case text == "let" && (next == "[" || next == "{"):
		return true
	case text == "await" && next == "using" && !after.newline:
		l := p.lexer
		l.next()
		after = l.next()
		next = p.code[after.start:after.end]
	case text != "let" && text != "using":
		return false
	}
	return after.kind == word && (text == "let" || !after.newline) && next != "in" && next != "instanceof"
}

func (p *parser) expressionStatement(s *statement) {
	s.kind = expression
	s.value.start = p.tok.start
	s.node = p.sequence(false)
	s.value.end = p.last
	s.body = p.lastBody
	p.semicolon()
}

// variables reads a declaration from its keyword on.
func (p *parser) variables(s *statement) {
	s.node = p.declarations(false)
	p.semicolon()
}

// declarations reads names or patterns and their initial values.
func (p *parser) declarations(noIn bool) *Node {
	d := declaration{span{p.tok.start, p.tok.end}, p.text(), noIn, nil}
	n := p.named(Declaration)
	if p.accept("await") {
		p.noteAwait()
		p.expect("using")
	} else {
		p.next()
	}
	for {
		t := target{span: span{start: p.tok.start}}
		declarator := p.node(Declarator)
		t.node = p.bindingTarget()
		declarator.add(t.node)
		t.end = p.last
		if p.accept("=") {
			declarator.add(p.assignment(noIn))
		}
		n.add(declarator)
		t.valueEnd = p.last
		d.targets = append(d.targets, t)
		if !p.accept(",") {
			break
		}
	}
	isTop := !noIn && (p.depth == 1 || p.exporting && p.depth == 2)
	if !p.function && (d.keyword == "var" || isTop && (d.keyword == "let" || d.keyword == "const")) {
		p.decls = append(p.decls, d)
	}
	return n
}

// bindingTarget reads a name or a pattern that is bound.
func (p *parser) bindingTarget() *Node {
	if p.tok.kind == word {
		return p.binding(Identifier)
	}
	return p.arrayOrObject()
}

// block reads a block that is a part of a node.
func (p *parser) block(of *Node) []statement {
	n := p.node(Block)
	of.add(n)
	return p.braces(n)
}

// braces reads the statements of a block.
func (p *parser) braces(block *Node) []statement {
	p.expect("{")
	list := p.statements(block)
	p.expect("}")
	return list
}

// functionStatement reads the declaration of a function. That of export default need not have a name.
func (p *parser) functionStatement(s *statement) {
	s.node = p.functionFrom()
	s.node.declares = s.node.Key != nil
	s.body = p.lastBody
}

func (p *parser) classStatement(s *statement) {
	s.node = p.class()
	s.node.declares = s.node.Key != nil
}

// name returns the name of a declared function or class.
func (s *statement) name() string {
	if s.node == nil || !s.node.declares {
		return ""
	}
	return s.node.Key.Name
}

// callable reports whether the value is exactly one function.
func (s *statement) callable() bool {
	return (s.kind == expression || s.kind == defaulting) && s.node.isFunction()
}

// lastStatement returns the last statement that may have a value. It skips imports, which
// are hoisted, and lists of exports.
func lastStatement(list []statement) *statement {
	for i := len(list) - 1; i >= 0; i-- {
		if s := &list[i]; !s.valueless() {
			return s
		}
	}
	return nil
}

// valueless reports whether lastStatement skips the statement.
func (s *statement) valueless() bool {
	return s.kind == empty || s.kind == importing || s.kind == exporting && s.value.end == 0
}

// results returns the expressions one of which the statement evaluates last.
func (s *statement) results() []span {
	if s.kind == expression {
		return []span{s.value}
	}
	var list []span
	for _, part := range s.parts {
		if last := lastStatement(part); last != nil {
			list = append(list, last.results()...)
		}
	}
	return list
}
