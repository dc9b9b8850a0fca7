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

func (r *reader) statements() []statement {
	var list []statement
	for r.tok.kind != atEnd && !r.is("}") {
		list = append(list, r.statement())
	}
	return list
}

func (r *reader) statement() statement {
	r.deeper()
	defer r.shallower()
	s := statement{span: span{start: r.tok.start}}
	switch r.tok.kind {
	case word:
		r.byWord(&s)
	case punctuator:
		r.byPunctuator(&s)
	default:
		r.expressionStatement(&s)
	}
	s.end = r.last
	return s
}

func (r *reader) byPunctuator(s *statement) {
	switch r.text() {
	case ";":
		s.kind = empty
		r.next()
	case "{":
		s.kind = block
		if r.effort.depth == 1 {
			r.brace = r.tok.start
		}
		s.parts = [][]statement{r.block()}
	default:
		r.expressionStatement(s)
	}
}

// byKeyword gives what reads the statements that begin with a word, and with which nothing
// else begins.
func byKeyword(text string) func(*reader, *statement) {
	switch text {
	case "var", "const":
		return (*reader).variables
	case "if":
		return (*reader).ifStatement
	case "for":
		return (*reader).forStatement
	case "while", "with":
		return (*reader).whileStatement
	case "do":
		return (*reader).doStatement
	case "try":
		return (*reader).tryStatement
	case "switch":
		return (*reader).switchStatement
	case "return", "throw", "break", "continue", "debugger":
		return (*reader).jump
	case "function":
		return (*reader).functionStatement
	case "class":
		return (*reader).classStatement
	case "export":
		return (*reader).exportStatement
	}
	return nil
}

func (r *reader) byWord(s *statement) {
	text := r.text()
	if read := byKeyword(text); read != nil {
		read(r, s)
		return
	}
	after := r.ahead()
	next := r.code[after.start:after.end]
	switch {
	case after.kind == punctuator && next == ":":
		s.kind = branching
		r.next()
		r.next()
		s.parts = [][]statement{{r.statement()}}
	case text == "import" && next != "(" && next != ".":
		r.importStatement(s)
	case text == "async" && next == "function" && !after.newline:
		r.functionStatement(s)
	case r.declares(text, after):
		r.variables(s)
	default:
		r.expressionStatement(s)
	}
}

// declares says whether let, using or await using begins a declaration here.
func (r *reader) declares(text string, after token) bool {
	next := r.code[after.start:after.end]
	switch text {
	case "let":
		return after.kind == word && next != "in" && next != "instanceof" || next == "[" || next == "{"
	case "using":
		return after.kind == word && !after.newline && next != "in" && next != "instanceof"
	case "await":
		if next != "using" || after.newline {
			return false
		}
		l := r.lexer
		l.next()
		name := l.next()
		return name.kind == word && !name.newline && r.code[name.start:name.end] != "in" && r.code[name.start:name.end] != "instanceof"
	}
	return false
}

func (r *reader) expressionStatement(s *statement) {
	s.kind = expression
	s.value.start = r.tok.start
	s.callable = r.sequence(false)
	r.effort.sequence(r.commas)
	s.value.end = r.last
	s.body = r.inner
	r.semicolon()
}

// variables reads a declaration from its keyword on.
func (r *reader) variables(*statement) {
	r.declarations(false)
	r.semicolon()
}

// declarations reads names or patterns, and what they are set to.
func (r *reader) declarations(noIn bool) {
	if r.take("await") {
		r.await()
		r.expect("using")
	} else {
		r.next()
	}
	for {
		r.target()
		if r.take("=") {
			r.assignment(noIn)
		}
		if !r.take(",") {
			return
		}
	}
}

// target reads a name or a pattern that is bound.
func (r *reader) target() {
	defer r.binds(r.begins())
	if r.tok.kind == word {
		r.use(r.text())
		r.declare(r.text())
		r.next()
		return
	}
	outer := r.pattern
	r.pattern = !r.function
	if r.is("[") {
		r.array()
	} else {
		r.object()
	}
	r.pattern = outer
}

func (r *reader) declare(name string) {
	if !r.function {
		r.declared = append(r.declared, name)
	}
}

func (r *reader) block() []statement {
	r.expect("{")
	list := r.statements()
	r.expect("}")
	return list
}

func (r *reader) functionStatement(s *statement) {
	s.kind = function
	s.name = r.functionFrom()
	s.body = r.inner
	r.declare(s.name)
}

func (r *reader) classStatement(s *statement) {
	s.kind = class
	s.name = r.class()
	r.declare(s.name)
}

// lastOf is the last statement that may have a value. Imports are hoisted, and lists of
// exports say nothing of their own.
func lastOf(list []statement) *statement {
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
func (s *statement) ends() []span {
	if s.kind == expression {
		return []span{s.value}
	}
	var list []span
	for _, part := range s.parts {
		if last := lastOf(part); last != nil {
			list = append(list, last.ends()...)
		}
	}
	return list
}
