package snippet

// operandKind is what may follow an operand.
type operandKind uint8

const (
	aValue    operandKind = iota
	aFunction             // a function's expression
	anArrow               // an arrow function: the expression is at its end
)

func (r *reader) operand(noIn bool) operandKind {
	switch r.tok.kind {
	case word:
		return r.wordOperand(noIn)
	case number, quoted, private, regex:
		r.next()
		return aValue
	case template:
		r.template()
		return aValue
	case punctuator:
		return r.bracketOperand(noIn)
	}
	r.fail()
	return aValue
}

func (r *reader) bracketOperand(noIn bool) operandKind {
	switch r.text() {
	case "(":
		names := r.begins()
		function := r.arguments()
		switch {
		case r.is("=>") && !r.tok.newline:
			r.binds(names)
			return r.arrow(false, noIn)
		case function:
			r.names |= names
			return aFunction
		}
		r.names |= names
	case "[":
		r.array()
	case "{":
		r.object()
	case "/", "/=":
		r.again(r.regex)
		r.next()
	default:
		r.fail()
	}
	return aValue
}

func (r *reader) wordOperand(noIn bool) operandKind {
	switch r.text() {
	case "function":
		r.functionFrom()
		return aFunction
	case "class":
		r.class()
		return aValue
	case "async":
		return r.asyncOperand(noIn)
	case "import":
		r.importOperand()
		return aValue
	case "new": // new.target
		r.next()
		r.expect(".")
	}
	if isReserved(r.text()) {
		r.fail()
	}
	names := r.begins()
	r.use(r.text())
	r.next()
	if r.is("=>") && !r.tok.newline {
		r.binds(names)
		return r.arrow(false, noIn)
	}
	r.names |= names
	return aValue
}

// isReserved is for words that are no operands. What begins one is read elsewhere.
func isReserved(text string) bool {
	switch text {
	case "break", "case", "catch", "const", "continue", "debugger", "default", "do", "else", "enum",
		"export", "extends", "finally", "for", "if", "in", "instanceof", "return", "switch", "throw",
		"try", "var", "while", "with":
		return true
	}
	return false
}

// asyncOperand reads an async function, or async as a name.
func (r *reader) asyncOperand(noIn bool) operandKind {
	after := r.ahead()
	switch next := r.code[after.start:after.end]; {
	case after.newline:
	case next == "function":
		r.functionFrom()
		return aFunction
	case next == "(":
		r.next()
		names := r.begins()
		r.arguments()
		if r.is("=>") && !r.tok.newline {
			r.binds(names)
			return r.arrow(true, noIn)
		}
		r.names |= names
		return aValue
	case after.kind == word:
		l := r.lexer
		l.next()
		if t := l.next(); r.code[t.start:t.end] == "=>" {
			r.next()
			r.bind(r.text())
			r.next()
			return r.arrow(true, noIn)
		}
	}
	r.next()
	if r.is("=>") && !r.tok.newline {
		return r.arrow(false, noIn)
	}
	return aValue
}

// importOperand reads import(…), import.meta and import.source(…).
func (r *reader) importOperand() {
	at := span{r.tok.start, r.tok.end}
	r.next()
	switch {
	case r.take("."):
		if r.is("meta") {
			r.metas = append(r.metas, span{at.start, r.tok.end})
		}
		r.next()
	case r.is("("):
		r.imports = append(r.imports, at)
	default:
		r.fail()
	}
}

// arrow reads an arrow function from its arrow on.
func (r *reader) arrow(async, noIn bool) operandKind {
	r.next()
	outer := r.context
	r.context = context{async: async, function: true}
	if r.is("{") {
		r.inner = r.block()
	} else {
		r.assignment(noIn)
		r.inner = nil
	}
	r.context = outer
	return anArrow
}
