package snippet

import "strings"

// sequence reads an expression, commas included. It says whether it is one function and
// nothing more.
func (r *reader) sequence(noIn bool) (callable bool) {
	callable = r.assignment(noIn)
	commas := 0
	for ; r.take(","); commas++ {
		r.assignment(noIn)
		callable = false
	}
	r.commas = commas
	return callable
}

// assignment reads an expression without commas. Precedence is of no matter to where it
// ends, so operands and operators alternate. What nests on the right, and is read by
// recursion elsewhere, counts as nested until the end.
func (r *reader) assignment(noIn bool) (callable bool) {
	depth := r.effort.depth
	defer func() { r.effort.depth = depth }()
	callable = true
	for level := depth; !r.failed; {
		r.effort.depth = level
		r.deeper()
		if r.prefixes() {
			callable = false
		}
		if r.is("yield") && r.generator {
			if !r.yield() {
				return false
			}
			callable = false
			continue
		}
		kind := r.operand(noIn)
		if kind == anArrow {
			return callable
		}
		if r.members() || kind != aFunction {
			callable = false
		}
		some, right := r.operator(noIn)
		if !some {
			return callable
		}
		if right {
			level++
		}
		callable = false
	}
	return false
}

// isPrefixOperator is for what stands before an operand. new is one as far as tokens go.
func isPrefixOperator(text string) bool {
	switch text {
	case "!", "~", "+", "-", "++", "--", "typeof", "void", "delete", "new":
		return true
	}
	return false
}

func (r *reader) prefixes() (some bool) {
	for r.tok.kind == word || r.tok.kind == punctuator {
		text := r.text()
		switch {
		case text == "await" && r.async && !r.isAhead("=>"):
			r.await()
		case text == "new" && r.isAhead("."):
			return some
		case !isPrefixOperator(text):
			return some
		}
		if text == "~" {
			r.waved = r.waved || beginsFence(r.code, r.tok.start, "~~~")
		}
		r.deeper()
		r.next()
		some = true
	}
	return some
}

// await notes the operator, which makes a module of code if it is outside of functions.
func (r *reader) await() { r.awaits = r.awaits || !r.function }

// yield reads the word, and says whether it has an operand.
func (r *reader) yield() bool {
	r.next()
	if r.tok.newline || r.tok.kind == atEnd || r.isAny(")", "]", "}", ",", ";", ":", "in", "of") {
		return false
	}
	r.take("*")
	return true
}

// operator reads what stands between two operands, if anything does, and says whether it
// binds to the right. Of those that bind to the left esbuild makes lists.
func (r *reader) operator(noIn bool) (some, right bool) {
	switch {
	case r.take("?"):
		r.assignment(false)
		r.expect(":")
		return true, true
	case r.tok.kind == word:
		return r.take("instanceof") || !noIn && r.take("in"), false
	case r.tok.kind != punctuator || standsBetweenNone(r.text()):
		return false, false
	case r.is("<") && strings.HasPrefix(r.code[r.tok.start:], "<!--"):
		r.fail() // a browser's comment, where it is no module
	}
	text := r.text()
	r.next()
	return true, text == "**" || strings.HasSuffix(text, "=") && !isComparison(text)
}

// standsBetweenNone is for the punctuators that stand between no operands.
func standsBetweenNone(text string) bool {
	switch text {
	case "(", ")", "[", "]", "{", "}", ";", ",", ":", ".", "...", "?.", "=>", "!", "~", "++", "--":
		return true
	}
	return false
}

func isComparison(text string) bool {
	switch text {
	case "==", "===", "!=", "!==", "<=", ">=":
		return true
	}
	return false
}

func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool)
	for _, t := range texts {
		set[t] = true
	}
	return set
}

// members reads what follows an operand at once: .name, [key], (arguments), a template,
// ++.
func (r *reader) members() (some bool) {
	for n := 0; ; n++ {
		switch {
		case r.tok.kind == template:
			r.template()
		case r.is("."), r.is("?.") && !r.isAhead("(") && !r.isAhead("["):
			r.member()
		case r.is("?."):
			r.next()
		case r.is("["):
			r.next()
			r.sequence(false)
			r.expect("]")
		case r.is("("):
			r.arguments()
		case r.isAny("++", "--") && !r.tok.newline:
			r.next()
		default:
			return n > 0
		}
		if n > maxMembers {
			r.trouble = nestedTooDeeply
			r.fail()
		}
	}
}

// member reads .name, .#name, ?.name and ?.`…`, which is wrong.
func (r *reader) member() {
	r.next()
	if r.tok.kind != word && r.tok.kind != private {
		r.fail()
	}
	r.next()
}

// arguments reads a list in parentheses: an expression's, a call's, or the parameters of
// an arrow function. It says whether one function is all there is.
func (r *reader) arguments() (callable bool) {
	r.expect("(")
	for n := 0; !r.failed && !r.is(")"); n++ {
		spread := r.take("...")
		function := r.assignment(false)
		callable = function && n == 0 && !spread
		if !r.is(")") {
			r.expect(",")
			callable = false
		}
	}
	r.expect(")")
	return callable
}

func (r *reader) array() {
	r.expect("[")
	for !r.failed && !r.is("]") {
		if r.take(",") {
			continue
		}
		r.take("...")
		r.assignment(false)
		if !r.is("]") {
			r.expect(",")
		}
	}
	r.expect("]")
}

// template reads one from its first piece on.
func (r *reader) template() {
	r.fenced = r.fenced || beginsFence(r.code, r.tok.start, "```")
	for strings.HasSuffix(r.text(), "${") && r.tok.kind == template {
		r.next()
		r.sequence(false)
		if !r.is("}") {
			r.fail()
			return
		}
		r.again(r.lexer.template)
	}
	r.next()
}
