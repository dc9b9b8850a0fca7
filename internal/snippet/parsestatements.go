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
	// callable: the value is exactly one function expression.
	callable bool
	// body is the body of a function that is the value or is declared.
	body []statement
	// name is the name of the declared function or class.
	name    string
	nameEnd int // of a function
	// parts are the lists of statements one of which runs last.
	parts [][]statement
	// declares is the kind of the exported declaration.
	declares statementKind
	bindings []binding // of an import
	from     span      // the quoted name of a module
	with     span      // an import's attributes
}

// A binding is one name that an import binds or a list exports, as written.
type binding struct{ imported, local string }

func (p *parser) statements() []statement {
	var list []statement
	for p.tok.kind != atEnd && !p.is("}") {
		list = append(list, p.statement())
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
		s.parts = [][]statement{p.block()}
	default:
		p.expressionStatement(s)
	}
}

func (p *parser) wordStatement(s *statement) {
	switch p.text() {
	case "var", "const":
		p.variables()
	case "if":
		p.ifStatement(s)
	case "for":
		p.forStatement()
	case "while", "with":
		p.whileStatement()
	case "do":
		p.doStatement()
	case "try":
		p.tryStatement(s)
	case "switch":
		p.switchStatement(s)
	case "return", "throw", "break", "continue", "debugger":
		p.jumpStatement()
	case "function":
		p.functionStatement(s)
	case "class":
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
		s.parts = [][]statement{{p.statement()}}
	case text == "import" && next != "(" && next != ".":
		p.importStatement(s)
	case text == "async" && next == "function" && !after.newline:
		p.functionStatement(s)
	case p.declares(text, after):
		p.variables()
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
	s.callable = p.sequence(false)
	s.value.end = p.last
	s.body = p.lastBody
	p.semicolon()
}

// variables reads a declaration from its keyword on.
func (p *parser) variables() {
	p.declarations(false)
	p.semicolon()
}

// declarations reads names or patterns and their initial values.
func (p *parser) declarations(noIn bool) {
	d := declaration{span{p.tok.start, p.tok.end}, p.text(), noIn, nil}
	if p.accept("await") {
		p.noteAwait()
		p.expect("using")
	} else {
		p.next()
	}
	for {
		t := target{span: span{start: p.tok.start}}
		p.bindingTarget()
		t.end = p.last
		if p.accept("=") {
			p.assignment(noIn)
		}
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
}

// bindingTarget reads a name or a pattern that is bound.
func (p *parser) bindingTarget() {
	defer p.bindNames(p.beginNames())
	if p.tok.kind == word {
		p.bindName(p.text())
		p.declare(p.text())
		p.next()
		return
	}
	outer := p.pattern
	p.pattern = !p.function
	if p.is("[") {
		p.array()
	} else {
		p.object()
	}
	p.pattern = outer
}

func (p *parser) declare(name string) {
	if !p.function {
		p.declared = append(p.declared, name)
	}
}

func (p *parser) block() []statement {
	p.expect("{")
	list := p.statements()
	p.expect("}")
	return list
}

func (p *parser) functionStatement(s *statement) {
	s.kind = function
	s.name = p.functionFrom()
	s.nameEnd = p.nameEnd
	s.body = p.lastBody
	p.declare(s.name)
}

func (p *parser) classStatement(s *statement) {
	s.kind = class
	s.name = p.class()
	p.declare(s.name)
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
