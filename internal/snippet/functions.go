package snippet

// functionFrom reads a function from async or function on, and gives its name.
func (r *reader) functionFrom() (name string) {
	async := r.take("async")
	r.expect("function")
	generator := r.take("*")
	if r.tok.kind == word {
		name = r.text()
		r.bind(name)
		r.next()
	}
	r.body(context{async: async, generator: generator, function: true})
	return name
}

// body reads the parameters and the body of a function.
func (r *reader) body(c context) {
	r.deeper()
	defer r.shallower()
	outer := r.context
	r.context = c
	names := r.begins()
	r.arguments()
	r.binds(names)
	r.inner = r.block()
	r.context = outer
}

// object reads one between braces, or a pattern.
func (r *reader) object() {
	r.expect("{")
	for !r.failed && !r.is("}") {
		if r.take("...") {
			r.assignment(false)
		} else {
			r.property()
		}
		if !r.is("}") {
			r.expect(",")
		}
	}
	r.expect("}")
}

func (r *reader) property() {
	c := r.modifiers("async", "get", "set")
	name := r.text()
	r.key()
	switch {
	case r.is("("):
		r.body(c)
	case r.take(":"):
		r.assignment(false)
	case r.take("="):
		r.use(name)
		r.assignment(false)
	default:
		r.use(name)
	}
}

// modifiers reads the words and the asterisk before a member's name, unless they are
// themselves that name.
func (r *reader) modifiers(words ...string) context {
	c := context{function: true}
	for r.isAny(words...) {
		after := r.ahead()
		next := r.code[after.start:after.end]
		named := after.kind == word || after.kind == quoted || after.kind == number || after.kind == private ||
			next == "[" || next == "*" || next == "{" && r.is("static")
		if !named || after.newline && r.isAny("async", "accessor") {
			break
		}
		c.async = c.async || r.is("async")
		r.next()
	}
	c.generator = r.take("*")
	return c
}

// key reads a member's name.
func (r *reader) key() {
	switch {
	case r.take("["):
		r.assignment(false)
		r.expect("]")
	case r.tok.kind == word || r.tok.kind == quoted || r.tok.kind == number || r.tok.kind == private:
		r.next()
	default:
		r.fail()
	}
}

// class reads one from its keyword on, and gives its name.
func (r *reader) class() (name string) {
	depth := r.effort.depth
	defer func() { r.effort.depth = depth }()
	r.deeper()
	r.next()
	if r.tok.kind == word && !r.is("extends") {
		name = r.text()
		r.bind(name)
		r.next()
	}
	if r.take("extends") {
		r.prefixes()
		r.operand(false)
		r.members()
	}
	r.expect("{")
	for !r.failed && !r.is("}") {
		if !r.take(";") {
			r.classMember()
		}
	}
	r.expect("}")
	return name
}

func (r *reader) classMember() {
	c := r.modifiers("static", "async", "get", "set", "accessor")
	if r.is("{") {
		outer := r.context
		r.context = context{function: true}
		r.block()
		r.context = outer
		return
	}
	r.key()
	if r.is("(") {
		r.body(c)
		return
	}
	if r.take("=") {
		outer := r.context
		r.context = context{function: true}
		r.assignment(false)
		r.context = outer
	}
	r.semicolon()
}
