package snippet

func (r *reader) ifStatement(s *statement) {
	s.kind = branching
	r.next()
	r.condition()
	s.parts = [][]statement{{r.statement()}}
	if r.take("else") {
		s.parts = append(s.parts, []statement{r.statement()})
	}
}

// condition reads an expression in parentheses.
func (r *reader) condition() {
	r.expect("(")
	r.sequence(false)
	r.expect(")")
}

func (r *reader) whileStatement(*statement) {
	r.next()
	r.condition()
	r.statement()
}

func (r *reader) doStatement(*statement) {
	r.next()
	r.statement()
	r.expect("while")
	r.condition()
	r.take(";") // none is needed behind do…while, even on the same line
}

func (r *reader) forStatement(*statement) {
	r.next()
	if r.take("await") {
		r.await()
	}
	r.expect("(")
	r.forHead()
	r.expect(")")
	r.statement()
}

func (r *reader) forHead() {
	after := r.ahead()
	switch {
	case r.is(";"):
	case r.is("using") && r.isAhead("of"): // a variable of this name
		r.next()
	case r.isAny("var", "const"), r.tok.kind == word && r.declares(r.text(), after):
		r.declarations(true)
	default:
		r.sequence(true)
		r.effort.sequence(r.commas)
	}
	if r.take("of") || r.take("in") {
		r.sequence(false)
		return
	}
	r.expect(";")
	if !r.is(";") {
		r.sequence(false)
	}
	r.expect(";")
	if !r.is(")") {
		r.sequence(false)
		r.effort.sequence(r.commas)
	}
}

func (r *reader) tryStatement(s *statement) {
	s.kind = branching
	r.next()
	s.parts = [][]statement{r.block()}
	if r.take("catch") {
		if r.take("(") {
			r.target()
			r.expect(")")
		}
		s.parts = append(s.parts, r.block())
	}
	if r.take("finally") {
		r.block()
	}
}

func (r *reader) switchStatement(s *statement) {
	s.kind = branching
	r.next()
	r.condition()
	r.expect("{")
	for !r.failed && !r.is("}") {
		if !r.take("default") {
			r.expect("case")
			r.sequence(false)
		}
		r.expect(":")
		s.parts = append(s.parts, r.clause())
	}
	r.expect("}")
}

// clause reads the statements of a case. The break that ends it has no value, and leaves
// what was before.
func (r *reader) clause() []statement {
	var list []statement
	ends := false
	for r.tok.kind != atEnd && !r.isAny("}", "case", "default") {
		ends = r.is("break")
		list = append(list, r.statement())
	}
	if ends && len(list) > 0 {
		list = list[:len(list)-1]
	}
	return list
}

// jump reads return, throw, break, continue and debugger with what they take.
func (r *reader) jump(*statement) {
	if r.is("return") && !r.function {
		r.returns = true
	}
	r.next()
	if r.tok.kind != atEnd && !r.tok.newline && !r.isAny(";", "}") {
		r.sequence(false)
	}
	r.semicolon()
}
