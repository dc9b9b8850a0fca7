package snippet

type statementKind uint8

const (
	plain      statementKind = iota // a declaration, a loop, a jump: what has no value
	empty                           // a lone semicolon
	expression                      // its value is its expression's
	block                           // {…}
	branching                       // if, try, switch or a label: what one of its parts has
	function                        // a function's declaration
	class                           // a class's declaration
	importing                       // import …
	exporting                       // export …, but for a default
	defaulting                      // export default …
)

// A statement is one outside of functions, or of the body of a function that stands
// alone.
type statement struct {
	kind statementKind
	span // with its semicolon
	// value is the expression of an expression statement or of export default, and what
	// is declared by one that begins with export.
	value span
	// callable: the value is a function's expression, and nothing more.
	callable bool
	// body is that of a function which is the value or is declared.
	body []statement
	// name is what a function or a class is declared as.
	name string
	// parts are the lists of statements one of which such a statement ends with.
	parts [][]statement
	// declares is what stands behind export.
	declares statementKind
	bindings []binding // of an import
	from     span      // the quoted name of a module
	with     span      // an import's attributes
}

// A binding is one name that an import binds, as they are written.
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
		if p.cost.depth == 1 {
			p.lastBlock = p.tok.start
		}
		s.parts = [][]statement{p.block()}
	default:
		p.expressionStatement(s)
	}
}

// keywordStatement gives what reads the statements that begin with a word, and with which nothing
// else begins.
func keywordStatement(text string) func(*parser, *statement) {
	switch text {
	case "var", "const":
		return (*parser).variables
	case "if":
		return (*parser).ifStatement
	case "for":
		return (*parser).forStatement
	case "while", "with":
		return (*parser).whileStatement
	case "do":
		return (*parser).doStatement
	case "try":
		return (*parser).tryStatement
	case "switch":
		return (*parser).switchStatement
	case "return", "throw", "break", "continue", "debugger":
		return (*parser).jumpStatement
	case "function":
		return (*parser).functionStatement
	case "class":
		return (*parser).classStatement
	case "export":
		return (*parser).exportStatement
	}
	return nil
}

func (p *parser) wordStatement(s *statement) {
	text := p.text()
	if read := keywordStatement(text); read != nil {
		read(p, s)
		return
	}
	after := p.peek()
	next := p.code[after.start:after.end]
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
		p.variables(s)
	default:
		p.expressionStatement(s)
	}
}

// declares says whether let, using or await using begins a declaration here.
func (p *parser) declares(text string, after token) bool {
	next := p.code[after.start:after.end]
	switch text {
	case "let":
		return after.kind == word && next != "in" && next != "instanceof" || next == "[" || next == "{"
	case "using":
		return after.kind == word && !after.newline && next != "in" && next != "instanceof"
	case "await":
		if next != "using" || after.newline {
			return false
		}
		l := p.lexer
		l.next()
		name := l.next()
		return name.kind == word && !name.newline && p.code[name.start:name.end] != "in" && p.code[name.start:name.end] != "instanceof"
	}
	return false
}

func (p *parser) expressionStatement(s *statement) {
	s.kind = expression
	s.value.start = p.tok.start
	s.callable = p.sequence(false)
	p.cost.addSequence(p.commas)
	s.value.end = p.last
	s.body = p.lastBody
	p.semicolon()
}

// variables reads a declaration from its keyword on.
func (p *parser) variables(*statement) {
	p.declarations(false)
	p.semicolon()
}

// declarations reads names or patterns, and what they are set to.
func (p *parser) declarations(noIn bool) {
	if p.accept("await") {
		p.noteAwait()
		p.expect("using")
	} else {
		p.next()
	}
	for {
		p.bindingTarget()
		if p.accept("=") {
			p.assignment(noIn)
		}
		if !p.accept(",") {
			return
		}
	}
}

// target reads a name or a pattern that is bound.
func (p *parser) bindingTarget() {
	defer p.bindNames(p.beginNames())
	if p.tok.kind == word {
		p.useName(p.text())
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
	s.body = p.lastBody
	p.declare(s.name)
}

func (p *parser) classStatement(s *statement) {
	s.kind = class
	s.name = p.class()
	p.declare(s.name)
}

// lastStatement is the last statement that may have a value. Imports are hoisted, and lists of
// exports say nothing of their own.
func lastStatement(list []statement) *statement {
	for i := len(list) - 1; i >= 0; i-- {
		if s := &list[i]; !s.valueless() {
			return s
		}
	}
	return nil
}

// valueless are statements of which a program is none the longer.
func (s *statement) valueless() bool {
	return s.kind == empty || s.kind == importing || s.kind == exporting && s.value.end == 0
}

// ends are the expressions one of which such a statement ends with.
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
